// Package delivery tests the way of a write from an app to a record, and what people do on either end of it.
package delivery
