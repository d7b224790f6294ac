// Package dialect is what the field's libraries call the attributes of their spans: a file
// for each dialect with the table of its attributes, and list.go, which has their order.
//
// The tables are data. Package otel reads spans by them, with a reader for each form in
// which content is written. They are also the source of the page that documents them.
package dialect
