package kurrent

import (
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/eventlog"
)

func (s *settings) parseHosts(authority string) *eventlog.OpenError {
	const try = "write HOST:PORT,HOST:PORT,..., with names or IPv4 addresses"
	if authority == "" {
		return bad(try, "it names no host")
	}
	for part := range strings.SplitSeq(authority, ",") {
		if strings.ContainsAny(part, "[]") || strings.Count(part, ":") > 1 {
			return bad(try, "%q is an IPv6 address or has two ports; the client understands names and IPv4 addresses only", part)
		}
		host, port, found := strings.Cut(part, ":")
		if host == "" {
			return bad(try, "one of the hosts is empty")
		}
		if i := strings.IndexFunc(host, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r))
		}); i >= 0 {
			return bad(try, "the host %q has a character that no host's name has", host)
		}
		number := defaultPort
		if found {
			n, err := strconv.Atoi(port)
			if err != nil || n < 1 || n > 65535 {
				return bad(try, "the port %q of host %q is not a number from 1 to 65535", port, host)
			}
			number = n
		}
		address := host + ":" + strconv.Itoa(number)
		if slices.Contains(s.hosts, address) {
			return bad(try, "it names %s twice", address)
		}
		s.hosts = append(s.hosts, address)
	}
	if s.discover && len(s.hosts) > 1 {
		return bad("write esdb:// before several hosts", "esdb+discover:// takes one name, which stands for all nodes, and it has %d", len(s.hosts))
	}
	return nil
}

// optionNames are the options, as they are written. They are found in any case.
var optionNames = []string{
	"tls", "tlsVerifyCert", "tlsCAFile", "userCertFile", "userKeyFile", "nodePreference", "maxDiscoverAttempts",
	"discoveryInterval", "gossipTimeout", "keepAliveInterval", "keepAliveTimeout", "defaultDeadline", "prefix",
}

func (s *settings) parseOptions(query string) *eventlog.OpenError {
	values := map[string]string{}
	for part := range strings.SplitSeq(query, "&") {
		key, raw, found := strings.Cut(part, "=")
		i := slices.IndexFunc(optionNames, func(name string) bool { return strings.EqualFold(name, key) })
		switch {
		case part == "":
			return bad("write OPTION=VALUE&OPTION=VALUE after the question mark", "an option is empty")
		case i < 0:
			return bad("use one of "+strings.Join(optionNames, ", "), "there is no option %q", key)
		case !found || raw == "":
			return bad("write "+optionNames[i]+"=VALUE", "option %s has no value", optionNames[i])
		}
		value, err := url.PathUnescape(raw)
		if err != nil {
			return bad("write %25 for %", "the value of option %s is not percent-encoded correctly", optionNames[i])
		}
		if _, twice := values[optionNames[i]]; twice {
			return bad("give it once", "option %s is there twice", optionNames[i])
		}
		values[optionNames[i]] = value
	}
	for _, name := range optionNames { // in a fixed order: what comes later may depend on it
		if value, ok := values[name]; ok {
			if err := s.set(name, value); err != nil {
				return err
			}
		}
	}
	return s.checkCertificate()
}

func (s *settings) set(name, value string) *eventlog.OpenError {
	if s.insecure && slices.Contains([]string{"tlsVerifyCert", "tlsCAFile", "userCertFile", "userKeyFile"}, name) {
		return bad("leave out "+name+" or tls=false", "option %s has no use with tls=false", name)
	}
	switch name {
	case "tls":
		secure, err := truth(name, value)
		s.insecure = !secure
		return err
	case "tlsVerifyCert":
		verify, err := truth(name, value)
		s.unverified = !verify
		return err
	case "tlsCAFile":
		return s.setRoots(value)
	case "userCertFile":
		return absolute(value, &s.certFile)
	case "userKeyFile":
		return absolute(value, &s.keyFile)
	case "nodePreference":
		if !strings.EqualFold(value, "leader") {
			return bad("write nodePreference=leader, or leave it out", "nodePreference is %q, but commands read from the leader, where what was acknowledged can be seen", value)
		}
		return nil
	case "prefix":
		if err := eventlog.ValidateStream(value); err != nil || len(value) > maxPrefix {
			return bad("use at most 64 letters, digits, dots and hyphens", "prefix %q cannot be the start of a stream's name", value)
		}
		s.prefix = value
		return nil
	}
	return s.setNumber(name, value)
}

func truth(name, value string) (bool, *eventlog.OpenError) {
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, bad("write "+name+"=true or "+name+"=false", "option %s is %q", name, value)
}

func (s *settings) setNumber(name, value string) *eventlog.OpenError {
	limits := map[string]struct {
		unit     string
		min, max int
		set      func(n int)
	}{
		"maxDiscoverAttempts": {"rounds", 1, 1000, func(n int) { s.attempts = n }},
		"discoveryInterval":   {"milliseconds", 10, 60_000, func(n int) { s.interval = milliseconds(n) }},
		"gossipTimeout":       {"seconds", 1, 60, func(n int) { s.gossipTimeout = time.Duration(n) * time.Second }},
		"keepAliveInterval":   {"milliseconds", 10_000, 3_600_000, func(n int) { s.keepAliveEvery = milliseconds(n) }},
		"keepAliveTimeout":    {"milliseconds", 1000, 600_000, func(n int) { s.keepAliveWait = milliseconds(n) }},
		"defaultDeadline":     {"milliseconds", 100, 600_000, func(n int) { s.callTimeout = milliseconds(n) }},
	}[name]
	n, err := strconv.Atoi(value)
	if err != nil || n < limits.min || n > limits.max {
		return bad("write "+name+"="+strconv.Itoa(max(limits.min, min(limits.max, 10*limits.min)))+", a plain number without a unit",
			"option %s is %q, and not a number of %s from %d to %d", name, value, limits.unit, limits.min, limits.max)
	}
	limits.set(n)
	return nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func (s *settings) setRoots(file string) *eventlog.OpenError {
	pem, err := os.ReadFile(file)
	if err != nil {
		e := bad("check the path, which is relative to the working directory", "the file of option tlsCAFile cannot be read: %v", err)
		e.Err = err
		return e
	}
	s.roots = x509.NewCertPool()
	if !s.roots.AppendCertsFromPEM(pem) {
		return bad("name the file of the authority that signed the nodes' certificates, in PEM", "the file %q of option tlsCAFile holds no certificate", file)
	}
	return nil
}

// absolute makes a path absolute, because the client would take a relative one for
// relative to where the program was started.
func absolute(path string, to *string) *eventlog.OpenError {
	full, err := filepath.Abs(path)
	if err != nil {
		return bad("give an absolute path", "the path %q cannot be made absolute", path)
	}
	*to = full
	return nil
}
