// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is who images run as, unless they need more.
const nobody = "65532:65532"

// serveRegistry serves a registry that keeps its layers in dir, as long as this process lives.
func serveRegistry(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", registryHost)
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler:           registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)), registry.Logger(log.New(io.Discard, "", 0))),
	}
	go func() { _ = server.Serve(listener) }() // ends with the process
	return nil
}

// push makes an image of one program, which must need no library, pushes it and returns its reference by digest.
func push(ctx context.Context, repository, program, user string) (string, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	entry := "/" + filepath.Base(program)
	for _, dir := range []string{"tmp/"} {
		if err := w.WriteHeader(&tar.Header{Name: dir, Mode: 0o1777, Typeflag: tar.TypeDir}); err != nil {
			return "", err
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: entry[1:], Mode: 0o555, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(1))
	if err != nil {
		return "", err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), layer)
	if err != nil {
		return "", err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	// Names are resolved by Go itself: a program without libraries has no other resolver.
	config.Config = v1.Config{Entrypoint: []string{entry}, User: user, Env: []string{"PATH=/", "GODEBUG=netdns=go"}}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return "", err
	}
	reference, err := name.ParseReference(registryHost+"/"+repository, name.Insecure)
	if err != nil {
		return "", err
	}
	if err := remote.Write(reference, image, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %s: %w", repository, err)
	}
	digest, err := image.Digest()
	return reference.Context().Name() + "@" + digest.String(), err
}
