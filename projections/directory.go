package projections

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// directory is where the files are:
//
//	outcomes-v1-3.db    the third file of version 1
//	outcomes-v1.live    names the one that is read
//
// Each version has a live file of its own, so that two builds of holdfast can share a
// directory while one takes over from the other.
type directory string

// place is where one file is, by its name.
type place struct {
	name                string
	version, generation int
}

func (p place) file() string { return fmt.Sprintf("%s-v%d-%d.db", p.name, p.version, p.generation) }

func (p place) live() string { return fmt.Sprintf("%s-v%d.live", p.name, p.version) }

var fileName = regexp.MustCompile(`^([a-z-]+)-v([0-9]+)-([0-9]+)\.db$`)

func parsePlace(file string) (p place, ok bool) {
	parts := fileName.FindStringSubmatch(file)
	if parts == nil {
		return p, false
	}
	version, err := strconv.Atoi(parts[2])
	generation, err2 := strconv.Atoi(parts[3])
	return place{name: parts[1], version: version, generation: generation}, errors.Join(err, err2) == nil
}

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// live returns the live file of a projection's version, and false when there is none.
func (d directory) live(p *Projection) (place, bool, error) {
	of := place{name: p.Name, version: p.Version}
	content, err := os.ReadFile(d.path(of.live()))
	if errors.Is(err, fs.ErrNotExist) {
		return of, false, nil
	}
	if err != nil {
		return of, false, fmt.Errorf("projection %s: %w", p.Name, err)
	}
	named, ok := parsePlace(strings.TrimSpace(string(content)))
	if !ok || named.name != p.Name || named.version != p.Version {
		return of, false, fmt.Errorf("projection %s: %s names no file of it; remove it and rebuild", p.Name, d.path(of.live()))
	}
	return named, true, nil
}

// goLive makes a file the live one of its version, at once and for good.
func (d directory) goLive(p place) error {
	return d.replace(p.live(), []byte(p.file()+"\n"))
}

// replace writes a file beside the old one and then renames it over it.
func (d directory) replace(name string, content []byte) (err error) {
	f, err := os.CreateTemp(string(d), name+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), d.path(name)); err != nil {
		return err
	}
	return d.sync()
}

// sync makes what was renamed in the directory last.
func (d directory) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// add makes an empty file at a place, unless there is one.
func (d directory) add(p *Projection, at place) error {
	temporary := d.path(at.file() + "." + uuid.NewString() + ".tmp")
	if err := create(p, temporary); err != nil {
		return errors.Join(err, remove(temporary))
	}
	err := os.Link(temporary, d.path(at.file())) // which replaces nothing
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, remove(temporary))
}

// places lists the files that there are, oldest first for each projection and version.
func (d directory) places() ([]place, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var places []place
	for _, e := range entries {
		if p, ok := parsePlace(e.Name()); ok {
			places = append(places, p)
		}
	}
	return places, nil
}

// newest returns the newest file of a projection's version, and false when there is none.
func (d directory) newest(p *Projection) (newest place, found bool, err error) {
	places, err := d.places()
	newest = place{name: p.Name, version: p.Version}
	for _, at := range places {
		if at.name == p.Name && at.version == p.Version && at.generation > newest.generation {
			newest, found = at, true
		}
	}
	return newest, found, err
}
