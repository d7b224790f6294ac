// Package install tests the program as it is shipped, installed, configured and supervised.
package install
