package main

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"syscall"
	"time"

	"golang.org/x/term"
)

// osUser returns who runs the process, as user@host, and "" where the system does not
// say.
func osUser() string {
	who, err := user.Current()
	if err != nil || who.Username == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		return who.Username
	}
	return who.Username + "@" + host
}

// isTerminal reports whether one of the program's streams is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// self returns this very program as a child process. It has the program's name whatever
// the file is called, and is asked to stop, and then made to, when the context ends.
func self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0] = programName
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd, nil
}

// wasKilled reports whether SIGKILL ended a child process.
func wasKilled(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
