package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"ridgepoint/llm"
	"ridgepoint/llm/scripted"
)

// devCmd groups tools for trying Ridgepoint out.
type devCmd struct {
	LLMServer llmServerCmd `cmd:"" name:"llm-server" help:"Serve a scripted chat endpoint: replies from files by rule, and every way in which real endpoints fail."`
}

// llmServerCmd serves a script until it is interrupted.
type llmServerCmd struct {
	Script string `arg:"" type:"existingfile" help:"YAML file with the rules; see llm/scripted."`
	Listen string `default:"127.0.0.1:8999" help:"Address to listen on; port 0 takes a free one."`
	KeyEnv string `help:"Environment variable with the key that callers must send."`
}

// Run prints the base URL, then serves.
func (c *llmServerCmd) Run(ctx context.Context, env environment) error {
	script, err := scripted.Load(c.Script)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	var key llm.Secret
	if c.KeyEnv != "" {
		if key = llm.NewSecret(env.getenv(c.KeyEnv)); key.Empty() {
			return &exitError{exitUsage, fmt.Errorf("--key-env: the environment variable %s is not set", c.KeyEnv)}
		}
	}
	handler, err := scripted.New(script, key)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close() // hanging answers are part of scripts: nobody waits for them
	}()
	if _, err := fmt.Fprintf(env.stdout, "base_url: http://%s/v1\n", listener.Addr()); err != nil {
		return err
	}
	err = server.Serve(listener)
	if ctx.Err() == nil {
		return err
	}
	<-stopped
	calls, finished := handler.Calls(), 0
	for _, call := range calls {
		if call.Finished {
			finished++
		}
	}
	_, err = fmt.Fprintf(env.stderr, "served %d calls, %d answered in full\n", len(calls), finished)
	return err
}
