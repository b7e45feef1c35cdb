package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"
)

func main() {
	// The first signal ends what can be ended truthfully; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	p := &program{
		stdin:    os.Stdin,
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		env:      os.LookupEnv,
		user:     osUser,
		terminal: isTerminal,
		now:      time.Now,
		newID:    uuid.New,
		openLog:  openLog,
		openRail: openRail,
		self:     self,
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}
