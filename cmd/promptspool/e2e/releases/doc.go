// Package releases tests that the program reads what each release wrote, in place, and that sidecars and servers of
// two versions understand each other. The folder testdata has, for each release, what its processes left on disk, how
// they answered, what a sidecar and a server said to each other, and its commit. `make fixtures` adds those of this
// version, but for the commit, which is added when there is one; `make soak` builds the releases from their commits.
//
// What a release left does not change. It may be asked more: TestAReleaseAnswersWhatItAnswered has its binary answer,
// and with -update it keeps the answers.
package releases
