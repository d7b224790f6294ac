// Package requests has the commands `promptspool requests`, `traces` and `sessions`: they search,
// read, count, export, import and delete records at a server.
package requests
