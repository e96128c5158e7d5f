#include "clients/ctl/ctl_fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "clients/ctl/ctl_cmd.h"

void ctl_fault_text(char *out, size_t cap, struct strv s)
{
	size_t n = s.n < cap - 1 ? s.n : cap - 1;
	if (n)
		memcpy(out, s.p, n);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)out[i], next = i + 1 < n ? (unsigned char)out[i + 1] : 0;
		if (c < 0x20 || c == 0x7f)
			out[i] = ' ';
		else if (c == 0xc2 && next >= 0x80 && next < 0xa0) /* U+0080 to U+009F */
			out[i] = out[i + 1] = ' ';
	}
	while (n > 0 && n == cap - 1 && !strv_utf8((struct strv){out, n}))
		n--;
	if (!strv_utf8((struct strv){out, n}))
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)out[i] >= 0x80)
				out[i] = '?';
	out[n] = 0;
}

bool ctl_fault_set(struct ctl_fault *f, enum ctl_fault_kind kind, const char *fmt, ...)
{
	char text[sizeof f->text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	*f = (struct ctl_fault){.kind = kind};
	ctl_fault_text(f->text, sizeof f->text, strv_of(text));
	return false;
}

int ctl_fault_exit(const struct ctl_fault *f)
{
	switch (f->kind) {
	case CTL_FAULT_NONE:
		return CTL_OK;
	case CTL_FAULT_LOCAL:
		return CTL_USAGE;
	case CTL_FAULT_LOST:
		return CTL_UNREACHABLE;
	case CTL_FAULT_REFUSED:
	case CTL_FAULT_ANSWER:
		return CTL_REFUSED;
	}
	return CTL_REFUSED;
}
