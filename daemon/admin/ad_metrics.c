#include "daemon/admin/ad_metrics.h"

enum kind { KIND_COUNTER, KIND_GAUGE, KIND_HISTOGRAM };

static const struct row {
	enum kind kind;
	const char *name, *labels, *help;
} rows[] = {
#define COUNTER(id, name, labels, help) {KIND_COUNTER, name, labels, help},
#define GAUGE(id, name, labels, help) {KIND_GAUGE, name, labels, help},
#define HISTOGRAM(id, name, labels, help) {KIND_HISTOGRAM, name, labels, help},
#include "daemon/admin/metrics.tbl"
};

/* Upper bounds in microseconds, and as text in seconds. */
static const struct {
	int64_t us;
	const char *le;
} bounds[] = {
	{100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"},
	{5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},
	{250000, "0.25"}, {500000, "0.5"},  {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},
	{10000000, "10"}, {30000000, "30"},
};

static int64_t values[METRIC__COUNT]; /* histograms: the sum, microseconds */
static int64_t buckets[METRIC__COUNT][ARRAY_SIZE(bounds) + 1];

static struct {
	void (*fn)(void *ctx);
	void *ctx;
} collectors[AD_METRICS_COLLECTORS];

void ad_metrics_add(enum metric m, int64_t n)
{
	ASSERT(rows[m].kind != KIND_HISTOGRAM && (n >= 0 || rows[m].kind == KIND_GAUGE));
	values[m] += n;
}

void ad_metrics_copy(enum metric m, int64_t value)
{
	ASSERT(rows[m].kind == KIND_COUNTER);
	values[m] = value;
}

void ad_metrics_set(enum metric m, int64_t v)
{
	ASSERT(rows[m].kind == KIND_GAUGE);
	values[m] = v;
}

void ad_metrics_observe_us(enum metric m, int64_t us)
{
	size_t i = 0;
	ASSERT(rows[m].kind == KIND_HISTOGRAM);
	while (i < ARRAY_SIZE(bounds) && us > bounds[i].us)
		i++;
	buckets[m][i]++;
	values[m] += us;
}

int64_t ad_metrics_get(enum metric m)
{
	return values[m];
}

void ad_metrics_collect(void (*fn)(void *ctx), void *ctx)
{
	size_t i = 0;
	while (i < AD_METRICS_COLLECTORS && collectors[i].fn)
		i++;
	ASSERT(i < AD_METRICS_COLLECTORS);
	collectors[i].fn = fn;
	collectors[i].ctx = ctx;
}

void ad_metrics_drop(void (*fn)(void *ctx), void *ctx)
{
	for (size_t i = 0; i < AD_METRICS_COLLECTORS; i++)
		if (collectors[i].fn == fn && collectors[i].ctx == ctx)
			collectors[i].fn = NULL;
}

static void put_name(struct buf *out, const struct row *r, const char *suffix, const char *le)
{
	buf_printf(out, "%s%s", r->name, suffix);
	if (!r->labels[0] && !le)
		return;
	buf_printf(out, "{%s", r->labels);
	if (le)
		buf_printf(out, "%sle=\"%s\"", r->labels[0] ? "," : "", le);
	buf_putc(out, '}');
}

static void put_histogram(struct buf *out, const struct row *r, size_t m)
{
	int64_t sum = 0;
	for (size_t i = 0; i <= ARRAY_SIZE(bounds); i++) {
		sum += buckets[m][i];
		put_name(out, r, "_bucket", i < ARRAY_SIZE(bounds) ? bounds[i].le : "+Inf");
		buf_printf(out, " %lld\n", (long long)sum);
	}
	put_name(out, r, "_sum", NULL);
	buf_printf(out, " %lld.%06lld\n", (long long)(values[m] / 1000000),
		   (long long)(values[m] % 1000000));
	put_name(out, r, "_count", NULL);
	buf_printf(out, " %lld\n", (long long)sum);
}

void ad_metrics_render(struct buf *out)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	for (size_t i = 0; i < AD_METRICS_COLLECTORS; i++)
		if (collectors[i].fn)
			collectors[i].fn(collectors[i].ctx);
	for (size_t m = 0; m < METRIC__COUNT; m++) {
		const struct row *r = &rows[m];
		if (m == 0 || !strv_eq(strv_of(r->name), strv_of(rows[m - 1].name)))
			buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", r->name, r->help, r->name,
				   types[r->kind]);
		if (r->kind == KIND_HISTOGRAM) {
			put_histogram(out, r, m);
		} else {
			put_name(out, r, "", NULL);
			buf_printf(out, " %lld\n", (long long)values[m]);
		}
	}
}
