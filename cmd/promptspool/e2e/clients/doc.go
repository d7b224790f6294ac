// Package clients tests the promise to apps: published SDKs, the providers' own clients, OpenTelemetry, generated
// clients and every example of the documentation work as they are.
package clients
