package queue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/workers"
	"ridgepoint/workers/redistest"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	ring := workers.RandomKeyring()
	tests := []struct {
		name string
		cfg  Config
		want string // in the error; "": accepted
	}{
		{"empty is embedded", Config{}, ""},
		{"embedded", Config{Redis: "embedded"}, ""},
		{"local without a key", Config{Redis: "127.0.0.1:6379"}, ""},
		{"local by name", Config{Redis: "localhost:6379"}, ""},
		{"unix socket", Config{Redis: "unix:///run/redis.sock"}, ""},
		{"remote without a key", Config{Redis: "redis.lab:6379"}, "--key-file"},
		{"remote URL without a key", Config{Redis: "rediss://redis.lab:6379/0"}, "--key-file"},
		{"remote with a key", Config{Redis: "rediss://redis.lab:6379/0", Keyring: ring}, ""},
		{"remote, unsigned by the person's word", Config{Redis: "redis.lab:6379", AllowUnsigned: true}, ""},
		{"no port", Config{Redis: "redis.lab"}, "host:port"},
		{"another scheme", Config{Redis: "http://redis.lab:6379"}, "invalid URL scheme"},
		{"CA without TLS", Config{Redis: "127.0.0.1:6379", CAFile: []byte("x")}, "rediss://"},
		{"CA that is none", Config{Redis: "rediss://127.0.0.1:6379", CAFile: []byte("x")}, "no PEM certificate"},
		{"password in a bad URL", Config{Redis: "redis://u:hunter2@127.0.0.1:6379/notadb"}, "database"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.cfg.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v; want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// certificate makes a self-signed certificate for 127.0.0.1 and writes it with its key.
func certificate(t *testing.T, dir string) (certPEM []byte, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(dir, "redis.crt"), filepath.Join(dir, "redis.key")
	for path, b := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certPEM, certFile, keyFile
}

// TestTLS takes trials over TLS with a password, and shows that a Redis with another certificate, or a wrong password, is refused.
func TestTLS(t *testing.T) {
	t.Parallel()
	redistest.Skip(t)
	dir := t.TempDir()
	cert, certFile, keyFile := certificate(t, dir)
	port := redistest.FreePort(t)
	redistest.Start(t, redistest.None, "--tls-port", fmt.Sprint(port), "--bind", "127.0.0.1", "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-auth-clients", "no", "--requirepass", "open sesame")
	cfg := testConfig(t, fmt.Sprintf("rediss://127.0.0.1:%d/1", port))
	cfg.CAFile, cfg.Password = cert, "open sesame"
	_, book, d := fleetOf(t, cfg, Options{}, newScripted(), "gpu0")
	dispatch(t, d, 5)
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 5 })

	wrong := cfg
	wrong.Password = "guess"
	if _, err := Connect(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
	other := cfg
	other.CAFile, _, _ = certificate(t, t.TempDir())
	if _, err := Connect(t.Context(), other); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another CA: %v", err)
	}
	plain := cfg
	plain.Redis, plain.CAFile = fmt.Sprintf("127.0.0.1:%d", port), nil
	if _, err := Connect(t.Context(), plain); err == nil {
		t.Error("a plain connection to the TLS port was accepted")
	}
}
