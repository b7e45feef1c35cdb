package main

import (
	"errors"
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
// them, and they end with it. Where the system permits that to nobody, the test is skipped.
func withOwnMounts(t *testing.T, do func(*testing.T)) {
	t.Helper()
	if os.Getenv(mountsVariable) == t.Name() {
		do(t)
		return
	}
	own := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	var out []byte
	var err error
	for _, attributes := range []syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: group},
		{Cloneflags: syscall.CLONE_NEWNS}, // for root, where there are no namespaces for users
	} {
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
