package kurrent

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"holdfast/eventlog"
)

const (
	scheme         = "esdb://"
	schemeDiscover = "esdb+discover://"
	defaultPort    = 2113
)

// settings are what a URL says. The client's own reading of it takes unknown options and
// bad durations for harmless; here they are errors.
type settings struct {
	discover       bool
	hosts          []string // host:port
	user, password string
	prefix         string
	callTimeout    time.Duration

	insecure, unverified          bool
	roots                         *x509.CertPool
	certFile, keyFile             string
	attempts                      int
	interval                      time.Duration
	gossipTimeout                 time.Duration
	keepAliveEvery, keepAliveWait time.Duration
}

// parse reads a URL. It returns [*eventlog.OpenError], which never shows the password.
func parse(named string) (*settings, error) {
	s := &settings{
		callTimeout: defaultCallTimeout, attempts: 10, interval: 100 * time.Millisecond,
		gossipTimeout: 5 * time.Second, keepAliveEvery: 10 * time.Second, keepAliveWait: 10 * time.Second,
	}
	if err := s.parse(named); err != nil {
		err.Path = Redacted(named)
		return nil, err
	}
	return s, nil
}

// bad makes an OpenError about a URL; parse says which.
func bad(try, format string, args ...any) *eventlog.OpenError {
	return &eventlog.OpenError{Reason: fmt.Sprintf(format, args...), Try: try}
}

func (s *settings) parse(named string) *eventlog.OpenError {
	rest, plain := strings.CutPrefix(named, scheme)
	if !plain {
		if rest, s.discover = strings.CutPrefix(named, schemeDiscover); !s.discover {
			return bad("write esdb://HOST:PORT,... or esdb+discover://NAME", "it does not start with esdb:// or esdb+discover://")
		}
	}
	if strings.ContainsAny(rest, "# \t\r\n") {
		return bad(`write "%23" for "#" and "%20" for a blank`, `it has a blank or a "#" in it`)
	}
	authority, query, hasQuery := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(authority, "/")
	if path != "" {
		return bad("leave out what follows the hosts, up to the question mark", "it has a path (%q), but a log has none", path)
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if err := s.parseUser(authority[:at]); err != nil {
			return err
		}
		authority = authority[at+1:]
	}
	if err := s.parseHosts(authority); err != nil {
		return err
	}
	if hasQuery {
		if err := s.parseOptions(query); err != nil {
			return err
		}
	}
	if s.insecure && s.user != "" {
		return bad("take the user and the password out of the URL, or leave out tls=false",
			"it has credentials and tls=false, and without TLS credentials are never sent")
	}
	return nil
}

func (s *settings) parseUser(part string) *eventlog.OpenError {
	const try = "write USER:PASSWORD@ before the hosts, with %40 for @, %3A for :, %2F for /, %3F for ? and %25 for %"
	user, password, found := strings.Cut(part, ":")
	var err error
	if s.user, err = url.PathUnescape(user); err != nil {
		return bad(try, "the user's name is not percent-encoded correctly")
	}
	if s.password, err = url.PathUnescape(password); err != nil {
		return bad(try, "the password is not percent-encoded correctly")
	}
	switch {
	case s.user == "":
		return bad(try, "it has credentials without a user")
	case !found || s.password == "":
		return bad(try, "it has a user without a password, and such credentials are never sent")
	case strings.Contains(s.user, ":"):
		return bad(try, "the user's name has a colon in it, which the protocol does not allow")
	}
	return nil
}

// config returns the client's configuration. It starts from one that the client made
// itself, because a zero value of it does not work.
func (s *settings) config(log esdb.LoggingFunc) (*esdb.Configuration, error) {
	start := scheme
	if s.discover {
		start = schemeDiscover
	}
	config, err := esdb.ParseConnectionString(start + strings.Join(s.hosts, ","))
	if err != nil {
		return nil, err
	}
	config.Logger = log
	config.DisableTLS, config.SkipCertificateVerification, config.RootCAs = s.insecure, s.unverified, s.roots
	config.UserCertFile, config.UserKeyFile = s.certFile, s.keyFile
	config.Username, config.Password = s.user, s.password
	config.NodePreference = esdb.NodePreferenceLeader
	config.MaxDiscoverAttempts, config.DiscoveryInterval = s.attempts, int(s.interval/time.Millisecond)
	config.GossipTimeout = int(s.gossipTimeout / time.Second)
	config.KeepAliveInterval, config.KeepAliveTimeout = s.keepAliveEvery, s.keepAliveWait
	return config, nil
}

// checkCertificate loads the user's certificate, as the client does later and at every
// connection, when it is too late for a clear error.
func (s *settings) checkCertificate() *eventlog.OpenError {
	switch {
	case (s.certFile == "") != (s.keyFile == ""):
		return bad("give both, or none", "userCertFile and userKeyFile belong together")
	case s.certFile == "":
		return nil
	}
	if _, err := tls.LoadX509KeyPair(s.certFile, s.keyFile); err != nil {
		e := bad("check that both files are there and are PEM", "the certificate in userCertFile and userKeyFile cannot be used: %v", err)
		e.Err = err
		return e
	}
	return nil
}

// Redacted returns a URL without its password, fit to be shown and logged. What is not
// the URL of such a log is returned as it is, as far as it holds no credentials.
func Redacted(named string) string {
	start := strings.Index(named, "://")
	if start < 0 {
		return named
	}
	start += len("://")
	// The last "@" before the options: a password that was not encoded may hold any.
	end := len(named)
	if q := strings.LastIndexByte(named, '@'); q >= start {
		user, _, found := strings.Cut(named[start:q], ":")
		if found {
			return named[:start] + user + ":***" + named[q:end]
		}
	}
	return named
}
