// Package yamlreader reads YAML files strictly and reports every fault with its line.
package yamlreader
