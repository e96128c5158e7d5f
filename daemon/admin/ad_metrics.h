/* Counters, gauges and histograms of metrics.tbl and their Prometheus text form. Loop thread only.
 */
#ifndef DAEMON_ADMIN_AD_METRICS_H
#define DAEMON_ADMIN_AD_METRICS_H

#include "daemon/app.h"
#include "proto/base/buf.h"

/* Counters, gauges and histograms in one enum, METRIC_id. */
enum metric {
#define COUNTER(id, name, labels, help) METRIC_##id,
#define GAUGE(id, name, labels, help) METRIC_##id,
#define HISTOGRAM(id, name, labels, help) METRIC_##id,
#include "daemon/admin/metrics.tbl"
	METRIC__COUNT
};

/* Counters (n >= 0) and gauges. */
void ad_metrics_add(enum metric m, int64_t n);
/* A counter that somebody else keeps: takes its value, which never goes back while it lives. */
void ad_metrics_copy(enum metric m, int64_t value);
/* Gauges. */
void ad_metrics_set(enum metric m, int64_t v);
/* Histograms. */
void ad_metrics_observe_us(enum metric m, int64_t us);
int64_t ad_metrics_get(enum metric m);

/* fn runs before each rendering, to set gauges. The same pair is removed by drop. */
#define AD_METRICS_COLLECTORS 16
void ad_metrics_collect(void (*fn)(void *ctx), void *ctx);
void ad_metrics_drop(void (*fn)(void *ctx), void *ctx);
/* Prometheus text format 0.0.4. */
void ad_metrics_render(struct buf *out);

#endif
