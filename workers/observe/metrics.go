// Package observe holds what a process shows of itself: Prometheus metrics, health pages, profiles. Every name is here, so
// that the dashboard can be checked against them. It must not decide anything.
package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics are the process's metrics. Durations are in seconds.
type Metrics struct {
	Registry *prometheus.Registry

	RedisUp       prometheus.Gauge
	RedisEpochs   prometheus.Counter // times that Redis was found without its data
	RedisMessages *prometheus.CounterVec
	AsynqLog      *prometheus.CounterVec

	QueueDepth *prometheus.GaugeVec // queue, state
	QueueWait  *prometheus.HistogramVec
	Stage      *prometheus.HistogramVec // stage: compile, measure, deliver, commit

	Outcomes  *prometheus.CounterVec // fault
	Again     *prometheus.CounterVec // kind: steps that had been done before
	Refused   *prometheus.CounterVec // reason
	Infra     *prometheus.CounterVec // kind
	Requeued  prometheus.Counter     // by the reaper
	Parked    prometheus.Counter
	BlobsLost prometheus.Counter

	DeviceBusy   *prometheus.CounterVec // device; event-measured seconds
	DeviceHeld   *prometheus.CounterVec // device; seconds in which a worker held it
	Quarantined  *prometheus.GaugeVec   // device
	LeasesHeld   prometheus.Gauge
	LeasesLost   *prometheus.CounterVec   // class
	LimitPermits *prometheus.GaugeVec     // class
	LimitHolders *prometheus.GaugeVec     // class
	LimitRate    *prometheus.GaugeVec     // class; 0: not limited
	LimitTokens  *prometheus.GaugeVec     // class; below 0: so many wait
	LimitWait    *prometheus.HistogramVec // class; for a permit and a token
	Spool        prometheus.Gauge
	Members      *prometheus.GaugeVec // state

	BudgetUsed *prometheus.GaugeVec // campaign, budget: share used, 0 to 1
	Incumbent  *prometheus.GaugeVec // campaign: confirmed speed-up
}

var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// NewMetrics makes and registers the metrics, with Go's and the process's own beside them.
func NewMetrics() *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ridgepoint_" + name, Help: help})
		r.MustRegister(g)
		return g
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ridgepoint_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "ridgepoint_" + name, Help: help})
		r.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ridgepoint_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ridgepoint_" + name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	return &Metrics{
		Registry:      r,
		RedisUp:       gauge("redis_up", "1 while Redis answers, 0 while it does not."),
		RedisEpochs:   counter("redis_data_lost_total", "Times that Redis was found without its data."),
		RedisMessages: counters("redis_messages_total", "Messages to Redis, by whose they are: asynq or own.", "owner"),
		AsynqLog:      counters("asynq_log_total", "Lines that asynq logged, by level.", "level"),
		QueueDepth:    gauges("queue_depth", "Tasks in a queue, by state.", "queue", "state"),
		QueueWait:     histograms("queue_wait_seconds", "Time from a payload's enqueue to its start, on Redis's clock.", "kind"),
		Stage:         histograms("stage_seconds", "Time of a stage.", "stage"),
		Outcomes:      counters("outcomes_total", "Outcomes, by fault.", "fault"),
		Again:         counters("again_total", "Steps that came again after they were done, and were dropped.", "kind"),
		Refused:       counters("payloads_refused_total", "Payloads that were refused and parked, by reason.", "reason"),
		Infra:         counters("infra_errors_total", "Steps that broken infrastructure stopped.", "kind"),
		Requeued:      counter("requeued_total", "Tasks of dead workers that the reaper brought back."),
		Parked:        counter("parked_total", "Tasks that were parked because their workers died on them."),
		BlobsLost:     counter("blobs_missing_total", "Blobs that were missing when they were needed."),
		DeviceBusy:    counters("device_busy_seconds_total", "Event-measured device time of candidates.", "device"),
		DeviceHeld:    counters("device_held_seconds_total", "Time in which a worker held the device.", "device"),
		Quarantined:   gauges("device_quarantined", "1 while a device is quarantined.", "device"),
		LeasesHeld:    gauge("leases_held", "Permits that this process holds."),
		LeasesLost:    counters("leases_lost_total", "Leases that ran out before their work was done; its result was refused.", "class"),
		LimitPermits:  gauges("limit_permits", "Permits of a class across the fleet.", "class"),
		LimitHolders:  gauges("limit_holders", "Holders of a class across the fleet.", "class"),
		LimitRate:     gauges("limit_rate", "Steps of a class that may begin a second across the fleet.", "class"),
		LimitTokens:   gauges("limit_tokens", "Tokens in the bucket of a class; below 0: so many steps wait for theirs.", "class"),
		LimitWait:     histograms("limit_wait_seconds", "Time that a step waited for its permit and token.", "class"),
		Spool:         gauge("spool_entries", "Outcomes on this worker's disk that are not yet acknowledged."),
		Members:       gauges("fleet_members", "Processes of the fleet, by state.", "state"),
		BudgetUsed:    gauges("campaign_budget_used_ratio", "Share of a campaign's budget that is used.", "campaign", "budget"),
		Incumbent:     gauges("campaign_incumbent_speedup", "Confirmed speed-up of a campaign's incumbent over the baseline.", "campaign"),
	}
}
