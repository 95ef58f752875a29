package queue

import (
	"net/http"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
)

// MonitorPath is where Monitor's pages expect to be served.
const MonitorPath = "/asynq"

// Monitor returns asynq's own pages over this node's Redis. Whoever reaches them can delete tasks and see payloads: serve them
// on loopback only. The embedded Redis has no address that they could open, and gets none.
func (n *Node) Monitor() (http.Handler, func() error) {
	if n.embedded != nil {
		return nil, func() error { return nil }
	}
	h := asynqmon.New(asynqmon.Options{RootPath: MonitorPath, RedisConnOpt: monitorClient{n}, ReadOnly: true})
	return h, h.Close
}

// monitorClient lets asynqmon have a connection of its own, which it closes.
type monitorClient struct{ n *Node }

// MakeRedisClient connects as the node does.
func (m monitorClient) MakeRedisClient() any {
	return newClient(m.n.client.Options())
}

var _ asynq.RedisConnOpt = monitorClient{}
