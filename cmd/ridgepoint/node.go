package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"ridgepoint/workers/observe"
	"ridgepoint/workers/queue"
)

// serveFlags say what a process shows of itself.
type serveFlags struct {
	Listen        string `help:"Serve metrics and health there, such as 127.0.0.1:9464 (RIDGEPOINT_LISTEN). Nothing is served by default." placeholder:"HOST:PORT" group:"Watching"`
	HTTPTokenFile string `name:"http-token-file" help:"File with the token that pages ask for; needed on anything but loopback (RIDGEPOINT_HTTP_TOKEN_FILE)." placeholder:"FILE" group:"Watching"`
	Pprof         bool   `help:"Serve profiles under /debug/pprof." group:"Watching"`
	Asynqmon      bool   `help:"Serve asynq's own pages under /asynq, on loopback only." group:"Watching"`
	LogLevel      string `help:"Lowest level that is logged: ${enum}." enum:"debug,info,warn,error" default:"info" group:"Watching"`
}

// logger writes JSON to stderr, and lines for people on a terminal.
func (f serveFlags) logger(env environment) zerolog.Logger {
	level, err := zerolog.ParseLevel(f.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // kong has checked the flag; other commands leave it empty
	}
	var out io.Writer = env.stderr
	if file, ok := env.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		out = zerolog.ConsoleWriter{Out: file, TimeFormat: "15:04:05"}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

// pages makes the HTTP side of a node.
func (f serveFlags) pages(env environment, n *queue.Node, log zerolog.Logger) (*observe.Config, func() error, error) {
	nothing := func() error { return nil }
	c := &observe.Config{Listen: f.Listen, Pprof: f.Pprof, Metrics: n.Metrics(), Log: log, ReadyFunc: func() error {
		if !n.Up() {
			return errors.New("redis does not answer")
		}
		return nil
	}}
	if c.Listen == "" {
		c.Listen = env.getenv("RIDGEPOINT_LISTEN")
	}
	path := f.HTTPTokenFile
	if path == "" {
		path = env.getenv("RIDGEPOINT_HTTP_TOKEN_FILE")
	}
	if err := readInto(path, true, func(b []byte) error { c.Token = strings.TrimSpace(string(b)); return nil }); err != nil {
		return nil, nothing, &exitError{exitUsage, err}
	}
	closeFunc := nothing
	if f.Asynqmon {
		c.MonitorPath = queue.MonitorPath
		c.Monitor, closeFunc = n.Monitor()
	}
	if err := c.Validate(); err != nil {
		return nil, nothing, &exitError{exitUsage, errors.Join(err, closeFunc())}
	}
	return c, closeFunc, nil
}

// nodeConfig is what a process of the fleet is opened with.
type nodeConfig struct {
	Redis  queue.Config
	Serve  serveFlags
	Limits fleetLimits
	Host   string
	Log    zerolog.Logger
}

// withNode opens a node, keeps it alive with its pages while work runs, and closes it. Work's end ends the rest.
func withNode(ctx context.Context, env environment, c nodeConfig, work func(context.Context, *queue.Node) error) error {
	n, err := queue.Open(ctx, c.Redis, queue.Options{Log: c.Log, Host: c.Host, Version: buildVersion(), ShippedFunc: isShipped, Limits: c.Limits.permits, Rates: c.Limits.rates})
	if err != nil {
		return err
	}
	pages, closePages, err := c.Serve.pages(env, n, c.Log)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	// The beat outlives the work's context: a worker that is told to stop still finishes and delivers.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	g, life := errgroup.WithContext(life)
	g.Go(func() error { return n.Run(life) })
	g.Go(func() error { return pages.Run(life, nil) })
	workCtx, stop := context.WithCancel(ctx)
	unlink := context.AfterFunc(life, stop) // pages that cannot be served end the work
	err = work(workCtx, n)
	unlink()
	stop()
	end()
	return errors.Join(err, g.Wait(), closePages(), n.Close())
}
