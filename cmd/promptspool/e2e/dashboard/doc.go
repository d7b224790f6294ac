// Package dashboard tests the dashboard in a browser, as people use it, and crawls all of it.
package dashboard
