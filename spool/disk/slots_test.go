package disk_test

import (
	"os"
	"testing"

	"promptspool/spool/disk"
)

func TestSlotsKeepTheOlderOneWhenTheNewerIsTorn(t *testing.T) {
	path := t.TempDir() + "/numbers"
	s, err := disk.OpenSlots(path, "TST\x01")
	if err != nil {
		t.Fatal(err)
	}
	for _, numbers := range [][2]uint64{{3, 4}, {5, 6}} {
		if err := s.Save(numbers); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("torn"), 10); err != nil { // the second save is in the first slot
		t.Fatal(err)
	}
	file.Close()

	looked, err := disk.PeekSlots(path, "TST\x01")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := disk.OpenSlots(path, "TST\x01")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for name, s := range map[string]disk.Slots{"looked at": looked, "opened": opened} {
		if s.Numbers != [2]uint64{3, 4} || !s.Damaged || s.Sure() {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
