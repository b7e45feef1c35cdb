package main

import (
	"context"
	"runtime"
	"runtime/debug"
)

// versionDocument is the result of version.
type versionDocument struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Revision and Time say what the binary was built from; they are left out where
	// it was built without version control.
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
}

func (c *call) version() command {
	return command{
		name:        "version",
		usage:       "print which build this is",
		description: []string{"Prints the version, and what it was built from where the build knows that."},
		examples:    []string{"version"},
		run:         func(context.Context) error { return c.printVersion() },
	}
}

func (c *call) printVersion() error {
	d := newVersionDocument()
	return c.result(d, func(p *page) {
		p.fact("Version", d.Version)
		p.fact("Go", d.Go+" "+d.Platform)
		revision := d.Revision
		if d.Modified {
			revision += " (with changes)"
		}
		p.fact("Revision", revision)
		p.fact("Time", d.Time)
	})
}

func newVersionDocument() versionDocument {
	d := versionDocument{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d
	}
	if info.Main.Version != "" {
		d.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = s.Value
		case "vcs.time":
			d.Time = s.Value
		case "vcs.modified":
			d.Modified = s.Value == "true"
		}
	}
	return d
}
