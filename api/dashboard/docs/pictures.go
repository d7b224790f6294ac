package docs

import (
	"embed"
	"io/fs"
)

// pictureFiles are what pages show. `make screenshots` takes them, except the drawings.
//
//go:embed pictures
var pictureFiles embed.FS

// Pictures are the files that pages show, by their names.
var Pictures = func() fs.FS {
	files, err := fs.Sub(pictureFiles, "pictures")
	if err != nil {
		panic("docs: " + err.Error())
	}
	return files
}()
