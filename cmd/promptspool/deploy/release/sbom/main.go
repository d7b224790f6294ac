// Command sbom writes the CycloneDX bill of materials of a Go binary: the modules that Go
// recorded in it.
//
// It has no serial number, and its time is that of the commit: the same binary always gives
// the same bill.
//
// Usage: sbom VERSION TIME BINARY BILL
package main

import (
	"debug/buildinfo"
	"fmt"
	"log"
	"os"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: sbom VERSION TIME BINARY BILL")
	}

	// The list that the linker wrote into the binary, rather than go.mod: only those were
	// built in.
	info, err := buildinfo.ReadFile(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}

	encoder := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(bill(info, os.Args[1], os.Args[2])); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

// bill lists the main module as the subject, and what it was built from as components.
func bill(info *buildinfo.BuildInfo, version, time string) *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	components := []cyclonedx.Component{
		component(cyclonedx.ComponentTypePlatform, "std", info.GoVersion, ""),
	}
	for _, module := range info.Deps {
		// The replacement of a module is what was compiled.
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components,
			component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version, module.Sum))
	}

	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version, "")
	bom.Metadata = &cyclonedx.Metadata{Timestamp: time, Component: &program}
	bom.Components = &components

	return bom
}

// component is a Go module. Its name and version are its identity everywhere (package URL).
func component(kind cyclonedx.ComponentType, name, version, sum string) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", name, version)
	c := cyclonedx.Component{Type: kind, BOMRef: url, Name: name, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}

	return c
}
