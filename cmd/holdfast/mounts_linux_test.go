package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mountsVariable names the test that runs with mounts of its own.
const mountsVariable = "HOLDFAST_TEST_MOUNTS"

// withOwnMounts runs a test again in a process whose mounts are its own: nobody else sees
// them, and they end with it. Where the system does not permit that, the test is skipped.
// Only as the system's root can it mount file systems on devices.
func withOwnMounts(t *testing.T, asRoot bool, do func(*testing.T)) {
	t.Helper()
	if os.Getenv(mountsVariable) == t.Name() {
		do(t)
		return
	}
	own := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	var out []byte
	var err error
	attempts := []syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: group},
		{Cloneflags: syscall.CLONE_NEWNS}, // for root, where there are no namespaces for users
	}
	if asRoot {
		attempts = attempts[1:]
	}
	for _, attributes := range attempts {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), mountsVariable+"="+t.Name())
		cmd.SysProcAttr = &attributes
		if out, err = cmd.CombinedOutput(); !notPermitted(err) {
			break
		}
	}
	switch {
	case notPermitted(err):
		t.Skipf("skipped: this system permits no mounts of one's own: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Fatalf("it did not run:\n%s", out)
	}
	t.Logf("%s", out)
}

func notPermitted(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSPC)
}

// mounted mounts a file system in memory of that size and returns its folder.
func mounted(t *testing.T, size string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("skipped: the mounts cannot be made private: %v", err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("skipped: nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// onDevice mounts a file system on a device of its own, in a file, and returns its folder
// and what makes it fail as after an error of the disk: from then on it takes no writes.
func onDevice(t *testing.T) (folder string, fail, again func()) {
	t.Helper()
	folder, image := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(image, nil, 0o600), os.Truncate(image, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("skipped: the mounts cannot be made private: %v", err)
	}
	command := func(name string, args ...string) error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out)
		}
		return nil
	}
	mount := func() error { return command("mount", "-o", "loop,errors=remount-ro", image, folder) }
	if err := errors.Join(command("mkfs.ext4", "-q", "-F", image), mount()); err != nil {
		t.Skipf("skipped: no file system can be made on a device here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fail = func() { must(command("mount", "-o", "remount,abort", folder)) }
	again = func() { must(syscall.Unmount(folder, 0)); must(mount()) }
	return folder, fail, again
}

// remounted makes a mount read-only or writable. Read-only takes effect only between two
// processes that have a file in it open for writing, so it is tried until it is let.
func remounted(t *testing.T, folder, size string, flags uintptr) {
	t.Helper()
	for {
		err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|flags, "size="+size)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EBUSY) || t.Context().Err() != nil {
			t.Fatalf("remount: %v", err)
		}
	}
}
