package otlp

import "encoding/json"

// CountLogs returns how many log records a request for /v1/logs has. Its errors wrap
// ErrMalformed.
func CountLogs(body []byte, form Form) (n int, err error) {
	d := &decoding{}
	if form == JSON {
		err = eachJSON(body, func(name string, value json.RawMessage) error {
			return countJSON(name, value, &n)
		})
		return n, err
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

// countJSON counts the log records in a member of a request, of a resource or of a scope.
func countJSON(name string, value json.RawMessage, n *int) error {
	switch name {
	case "resourceLogs", "scopeLogs":
		return eachElement(value, func(object json.RawMessage) error {
			return eachMember(object, func(name string, value json.RawMessage) error {
				return countJSON(name, value, n)
			})
		})
	case "logRecords":
		return eachElement(value, func(json.RawMessage) error {
			*n++
			return nil
		})
	}

	return nil
}
