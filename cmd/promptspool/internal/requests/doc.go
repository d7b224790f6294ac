// Package requests has the commands `promptspool requests ...` and `promptspool traces ...`: they search,
// read, count, export, import and delete records at a server.
package requests
