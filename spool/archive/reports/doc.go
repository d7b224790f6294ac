// Package reports decides which reports are of one call.
//
// An app, its framework, the provider's client and a gateway may each report a call. The rule is in
// the docs, on the page How spans become requests, section One call, several reports. It looks at the
// reports alone, never at the order in which they came.
package reports
