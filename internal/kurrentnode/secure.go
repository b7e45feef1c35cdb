package kurrentnode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Admin is the user who may do everything. All others may append to and read streams, and
// neither read all of them nor those of the server's own.
const Admin = "admin"

// security is what a secured node asks of its callers.
type security struct {
	authority string // the file of the certificate of who vouches for the node
	leaf      tls.Certificate
	users     map[string]string // passwords by names
}

// KeepSecure starts a node that keeps streams, behind TLS and for users with passwords. A
// certificate authority that nobody else knows vouches for it.
func KeepSecure(t testing.TB, users map[string]string) *Node {
	t.Helper()
	n := &Node{Streams: newStreams(), security: newSecurity(t, users)}
	n.Listen(t)
	t.Cleanup(n.Stop)
	return n
}

// URLFor names a secured node, for a user with a password.
func (n *Node) URLFor(user, password string) string {
	return "esdb://" + url.UserPassword(user, password).String() + "@" + n.address +
		"?tlsCAFile=" + url.QueryEscape(n.security.authority) + "&maxDiscoverAttempts=2&discoveryInterval=10&gossipTimeout=1"
}

func newSecurity(t testing.TB, users map[string]string) *security {
	t.Helper()
	certificate := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c, key
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	authority, signer := certificate(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority for tests"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf, key := certificate(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a node for tests"}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, authority, signer)
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &security{authority: path, leaf: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}, users: users}
}

// options are how the server of a secured node is made; a nil one asks nothing. What a node
// can do, and who leads, it tells everybody; the client asks for that without a password.
func (s *security) options() []grpc.ServerOption {
	if s == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{s.leaf}, MinVersion: tls.VersionTLS12})),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			user, err := s.user(stream.Context())
			if err != nil {
				return err
			}
			return handle(srv, &watched{ServerStream: stream, user: user})
		}),
	}
}

// user returns who calls.
func (s *security) user(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		encoded, _ := strings.CutPrefix(value, "Basic ")
		text, err := base64.StdEncoding.DecodeString(encoded)
		name, password, found := strings.Cut(string(text), ":")
		if known, is := s.users[name]; err == nil && found && is && known == password {
			return name, nil
		}
	}
	return "", status.Error(codes.Unauthenticated, "Authentication failed")
}

// watched is a stream of requests, none of which asks for more than the user may.
type watched struct {
	grpc.ServerStream
	user string
}

func (w *watched) RecvMsg(m any) error {
	if err := w.ServerStream.RecvMsg(m); err != nil || w.user == Admin {
		return err
	}
	name, all := "", false
	switch m := m.(type) {
	case *streams.ReadReq:
		name, all = string(m.GetOptions().GetStream().GetStreamIdentifier().GetStreamName()), m.GetOptions().GetAll() != nil
	case *streams.AppendReq:
		name = string(m.GetOptions().GetStreamIdentifier().GetStreamName())
	}
	if all || strings.HasPrefix(name, "$") {
		w.SetTrailer(metadata.Pairs("exception", "access-denied"))
		return status.Error(codes.PermissionDenied, "Access Denied")
	}
	return nil
}
