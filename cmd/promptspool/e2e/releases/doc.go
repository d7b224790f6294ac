// Package releases tests that the program reads what each release wrote, in place. The folder testdata has, for each
// release, what its processes left on disk and how they answered; `make fixtures` adds those of this version.
package releases
