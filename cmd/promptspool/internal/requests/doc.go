// Package requests has the commands `promptspool requests ...`: they search, read, count, export, import and delete
// records at a server.
package requests
