package kurrent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

func TestURL(t *testing.T) {
	s, err := parse("esdb://ad%40min:p%3Aw%40%2F%25@a.example:2111,B-2,127.0.0.1:2113?TLSVerifyCert=FALSE&tls=true&" +
		"maxdiscoverattempts=50&discoveryInterval=250&gossipTimeout=3&keepAliveInterval=20000&keepAliveTimeout=2000&" +
		"defaultDeadline=1500&nodePreference=Leader&prefix=acme.")
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.config(esdb.NoopLogging())
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, e := range config.GossipSeeds {
		hosts = append(hosts, e.String())
	}
	if got := strings.Join(hosts, " "); got != "a.example:2111 B-2:2113 127.0.0.1:2113" {
		t.Errorf("hosts %s", got)
	}
	if config.Username != "ad@min" || config.Password != "p:w@/%" {
		t.Errorf("credentials %q %q", config.Username, config.Password)
	}
	if config.DisableTLS || !config.SkipCertificateVerification {
		t.Errorf("tls %v, verify %v", !config.DisableTLS, !config.SkipCertificateVerification)
	}
	if config.MaxDiscoverAttempts != 50 || config.DiscoveryInterval != 250 || config.GossipTimeout != 3 ||
		config.KeepAliveInterval != 20*time.Second || config.KeepAliveTimeout != 2*time.Second {
		t.Errorf("numbers: %+v", config)
	}
	if s.callTimeout != 1500*time.Millisecond || s.prefix != "acme." || config.NodePreference != esdb.NodePreferenceLeader {
		t.Errorf("settings %+v", s)
	}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}

	// One host is dialled as it is, and asks no gossip; a name that is to be discovered does.
	s, err = parse("esdb://localhost?tls=false")
	if err != nil {
		t.Fatal(err)
	}
	if config, err = s.config(nil); err != nil || config.Address != "localhost:2113" || len(config.GossipSeeds) > 0 || config.DnsDiscover || !config.DisableTLS ||
		config.MaxDiscoverAttempts == 0 || config.GossipTimeout == 0 {
		t.Errorf("one host: %+v, %v", config, err)
	}
	s, err = parse("esdb+discover://cluster.example/")
	if err != nil {
		t.Fatal(err)
	}
	if config, err = s.config(nil); err != nil || config.Address != "cluster.example:2113" || !config.DnsDiscover {
		t.Errorf("a name to be discovered: %+v, %v", config, err)
	}
}

func TestURLRefuses(t *testing.T) {
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.crt"), filepath.Join(dir, "missing.crt")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, reason := range map[string]string{
		"kurrentdb://a":                              "does not start with",
		"ESDB://a":                                   "does not start with",
		"esdb:a":                                     "does not start with",
		"esdb://":                                    "no host",
		"esdb://?tls=false":                          "no host",
		"esdb://u:p@":                                "no host",
		"esdb://a,,b":                                "is empty",
		"esdb://:2113":                               "is empty",
		"esdb://[::1]:2113":                          "IPv6",
		"esdb://::1":                                 "IPv6",
		"esdb://a,fe80::1":                           "IPv6",
		"esdb://a:":                                  `port ""`,
		"esdb://a:http":                              `port "http"`,
		"esdb://a:0":                                 `port "0"`,
		"esdb://a:65536":                             `port "65536"`,
		"esdb://a b":                                 "a blank",
		"esdb://u:p#w@a":                             `"#"`,
		"esdb://a!b":                                 "a character",
		"esdb://a,a:2113":                            "twice",
		"esdb+discover://a,b":                        "takes one name",
		"esdb://a/streams":                           "a path",
		"esdb://u@a":                                 "without a password",
		"esdb://u:@a":                                "without a password",
		"esdb://:p@a":                                "without a user",
		"esdb://u%zz:p@a":                            "percent-encoded",
		"esdb://u:%@a":                               "percent-encoded",
		"esdb://u%3Av:p@a":                           "a colon",
		"esdb://u:p@a?tls=false":                     "never sent",
		"esdb://a?":                                  "option is empty",
		"esdb://a?tls=true&":                         "option is empty",
		"esdb://a?tls":                               "has no value",
		"esdb://a?tls=":                              "has no value",
		"esdb://a?tls=1":                             `tls is "1"`,
		"esdb://a?tls=true&TLS=true":                 "twice",
		"esdb://a?tls=%zz":                           "percent-encoded",
		"esdb://a?deadline=5":                        `no option "deadline"`,
		"esdb://a?connectionName=x":                  "no option",
		"esdb://a?defaultDeadline=10s":               "not a number of milliseconds",
		"esdb://a?defaultDeadline=0":                 "from 100",
		"esdb://a?defaultDeadline=99":                "from 100",
		"esdb://a?gossipTimeout=5000":                "not a number of seconds",
		"esdb://a?gossipTimeout=0":                   "from 1",
		"esdb://a?maxDiscoverAttempts=0":             "from 1",
		"esdb://a?maxDiscoverAttempts=-1":            "from 1",
		"esdb://a?discoveryInterval=1":               "from 10",
		"esdb://a?keepAliveInterval=9999":            "from 10000",
		"esdb://a?keepAliveInterval=10s":             "not a number of milliseconds",
		"esdb://a?keepAliveTimeout=1":                "from 1000",
		"esdb://a?nodePreference=follower":           "read from the leader",
		"esdb://a?prefix=$x":                         "prefix",
		"esdb://a?prefix=" + strings.Repeat("x", 65): "prefix",
		"esdb://a?tls=false&tlsVerifyCert=false":     "no use with tls=false",
		"esdb://a?tlsCAFile=x&tls=false":             "no use with tls=false",
		"esdb://a?tlsCAFile=" + missing:              "cannot be read",
		"esdb://a?tlsCAFile=" + empty:                "holds no certificate",
		"esdb://a?userCertFile=" + empty:             "belong together",
		"esdb://a?userKeyFile=" + empty:              "belong together",
		"esdb://a?userCertFile=" + empty + "&userKeyFile=" + empty: "cannot be used",
	} {
		_, err := parse(url)
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) {
			t.Errorf("parse(%q) = %v, want an OpenError", url, err)
			continue
		}
		if !strings.Contains(refused.Reason, reason) || refused.Try == "" || refused.Path == "" {
			t.Errorf("parse(%q): %q, try %q, want one that says %q", url, refused.Reason, refused.Try, reason)
		}
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	for _, url := range []string{
		"esdb://u:se cret@a", "esdb://u:secret@[::1]", "esdb://u:se@cret@a?x=y", "esdb://u:secret@a?tls=false", "esdb://u:secret@a/secretary",
		"esdb://u:secret@a?deadline=1", "kurrentdb://u:secret@a", "esdb://:secret@a", "esdb://u%zz:secret@a", "esdb://u:%secret@a", "esdb://u:secret@",
	} {
		_, err := parse(url)
		var refused *eventlog.OpenError
		if !errors.As(err, &refused) {
			t.Errorf("parse(%q) = %v", url, err)
			continue
		}
		for _, shown := range []string{refused.Path, refused.Try, refused.Error()} {
			if strings.Contains(strings.ReplaceAll(shown, "secretary", ""), "secret") || strings.Contains(shown, "cret@") {
				t.Errorf("parse(%q) shows the password: %s", url, shown)
			}
		}
	}
	if got := Redacted("esdb://u:p@a:1,b?tls=true"); got != "esdb://u:***@a:1,b?tls=true" {
		t.Error(got)
	}
	for _, plain := range []string{"sqlite:a@b:c", "esdb://a:1,b:2?tls=false", "memory:"} {
		if got := Redacted(plain); got != plain {
			t.Errorf("Redacted(%q) = %q", plain, got)
		}
	}
}

// FuzzURL makes sure that no URL makes the parser panic, that every refusal says what to
// do, and that what it takes the client takes too.
func FuzzURL(f *testing.F) {
	f.Add("esdb://u:p@a:1,b?tls=true&prefix=x")
	f.Add("esdb+discover://[::1]?defaultDeadline=10s")
	f.Fuzz(func(t *testing.T, url string) {
		s, err := parse(url)
		if err != nil {
			var refused *eventlog.OpenError
			if !errors.As(err, &refused) || refused.Reason == "" || refused.Try == "" {
				t.Errorf("parse(%q) = %#v", url, err)
			}
			return
		}
		config, err := s.config(esdb.NoopLogging())
		if err != nil {
			t.Fatalf("the client does not take what parse took for %q: %v", url, err)
		}
		if n := max(1, len(config.GossipSeeds)); n != len(s.hosts) {
			t.Errorf("the client understands %q as %d hosts, not %d", url, n, len(s.hosts))
		}
	})
}
