package otlp

import "encoding/json"

// CountLogs returns how many log records a request for /v1/logs has. Its errors wrap
// ErrMalformed.
func CountLogs(body []byte, form Form) (n int, err error) {
	d := &decoding{}
	if form == JSON {
		return countJSON(body)
	}

	// The same numbers as those of traces, resource by resource and scope by scope.
	err = eachField(body, func(resource *field) error {
		if !resource.isMessage(1) {
			return nil
		}
		return eachField(resource.bytes, func(scope *field) error {
			if !scope.isMessage(2) {
				return nil
			}
			return eachField(scope.bytes, func(f *field) error {
				if f.isMessage(2) {
					n++
				}
				return nil
			})
		})
	})

	return n, d.apart(err)
}

// countJSON counts the log records of a request in JSON.
func countJSON(body []byte) (n int, err error) {
	err = eachJSON(body, elementsOf("resourceLogs", func(resource json.RawMessage) error {
		return eachMember(resource, elementsOf("scopeLogs", func(scope json.RawMessage) error {
			return eachMember(scope, elementsOf("logRecords", func(json.RawMessage) error {
				n++
				return nil
			}))
		}))
	}))

	return n, err
}

// elementsOf returns a function for the members of an object. It calls fn with the elements of the
// one with this name.
func elementsOf(
	member string, fn func(element json.RawMessage) error,
) func(name string, value json.RawMessage) error {
	return func(name string, value json.RawMessage) error {
		if name != member {
			return nil
		}
		return eachElement(value, fn)
	}
}
