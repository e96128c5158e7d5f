#include "clients/ctl/ctl_entry.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static const char *shown(const struct strv *levels, size_t n, struct strv name)
{
	static char out[256];
	const struct ctl_entry e = {.levels = levels, .n_levels = n, .name = name};
	ctl_entry_name(&e, out, sizeof out);
	return out;
}

/* A name that dots would make ambiguous, or that a terminal would obey, is a JSON array. */
START_TEST(names_for_people)
{
	const struct strv plain[] = {STRV("a"), STRV("ü/b%")}, dot[] = {STRV("a.b")};
	const struct strv bell[] = {STRV("a\x1b[31m")}, c1[] = {STRV("a\xc2\x9bm")};
	const struct strv quote[] = {STRV("a\"b")}, array[] = {STRV("[\"a\"]")}, bad[] = {STRV("a\xff")};
	ck_assert_str_eq(shown(plain, 2, STRV("t")), "a.ü/b%.t");
	ck_assert_str_eq(shown(plain, 2, STRV("")), "a.ü/b%");
	ck_assert_str_eq(shown(dot, 1, STRV("t")), "[\"a.b\",\"t\"]");
	ck_assert_str_eq(shown(bell, 1, STRV("t")), "[\"a\\u001b[31m\",\"t\"]");
	ck_assert_str_eq(shown(quote, 1, STRV("t")), "[\"a\\\"b\",\"t\"]");
	ck_assert_str_eq(shown(array, 1, STRV("")), "[\"[\\\"a\\\"]\"]");
	ck_assert_str_eq(shown(c1, 1, STRV("")), "a  m");
	ck_assert_ptr_null(strstr(shown(bad, 1, STRV("t")), "\xff"));
}
END_TEST

static void parsed(const char *text, size_t want, const char *last)
{
	struct arena a;
	const struct strv *v;
	size_t n = 99;
	struct ctl_fault f = {0};
	arena_init(&a, 1 << 20);
	bool ok = ctl_entry_parse(text, &a, &v, &n, &f);
	ck_assert_msg(ok == (want > 0), "%s: %s", text, f.text);
	if (ok) {
		ck_assert_uint_eq(n, want);
		ck_assert(strv_eq(v[n - 1], strv_of(last)));
	} else {
		ck_assert_int_eq(f.kind, CTL_FAULT_LOCAL);
		ck_assert_uint_eq(n, 99);
	}
	arena_fini(&a);
}

START_TEST(names_of_the_command_line)
{
	char deep[256] = "a";
	parsed("a", 1, "a");
	parsed("a.b/c%.ü", 3, "ü");
	parsed("[\"a.b\", \"\\u00fc\"]", 2, "ü");
	parsed("[ \"[\" ]", 1, "[");
	for (const char *const *t = (const char *const[]){"", ".", "a.", ".a", "a..b", "[", "[]", "[1]",
							  "[\"\"]", "[\"a\",[\"b\"]]", "[\"a\"]x",
							  "a\xff", NULL};
	     *t; t++)
		parsed(*t, 0, NULL);
	/* 32 levels and a table. */
	for (size_t i = 1; i < 33; i++)
		snprintf(deep + strlen(deep), sizeof deep - strlen(deep), ".a");
	parsed(deep, 33, "a");
	snprintf(deep + strlen(deep), sizeof deep - strlen(deep), ".a");
	parsed(deep, 0, NULL);
}
END_TEST

START_TEST(text_of_faults)
{
	char out[8];
	struct ctl_fault f;
	ctl_fault_text(out, sizeof out, STRV("a\nb\x1b"));
	ck_assert_str_eq(out, "a b ");
	/* Cut at a character's end. */
	ctl_fault_text(out, sizeof out, STRV("abcdefü"));
	ck_assert_str_eq(out, "abcdef");
	ctl_fault_text(out, sizeof out, STRV("abc\xff\xc3"));
	ck_assert_str_eq(out, "abc??");
	ctl_fault_text(out, sizeof out, (struct strv){NULL, 0});
	ck_assert_str_eq(out, "");
	ck_assert(!ctl_fault_set(&f, CTL_FAULT_LOST, "%s", "x\ry"));
	ck_assert_str_eq(f.text, "x y");
	ck_assert_int_eq(ctl_fault_exit(&f), 3);
}
END_TEST

START_TEST(sets)
{
	struct ctl_set s;
	char text[32];
	bool is_new;
	ctl_set_init(&s, 1 << 20);
	ck_assert(!ctl_set_has(&s, STRV("")));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(text, sizeof text, "%d", i);
			ck_assert(ctl_set_add(&s, strv_of(text), &is_new));
			ck_assert_int_eq(is_new, round == 0);
		}
		ck_assert_uint_eq(s.n, 5000);
	}
	ck_assert(ctl_set_add(&s, STRV(""), &is_new) && is_new && ctl_set_has(&s, STRV("")));
	ck_assert(ctl_set_has(&s, STRV("4999")) && !ctl_set_has(&s, STRV("5000")));
	ctl_set_clear(&s);
	ck_assert(!ctl_set_has(&s, STRV("1")) && s.n == 0);
	/* The limit holds for many small texts and for large ones. */
	size_t n = 0;
	do
		snprintf(text, sizeof text, "x%zu", n);
	while (ctl_set_add(&s, strv_of(text), NULL) && n++ < 1000000);
	ck_assert_uint_gt(n, 1000);
	ck_assert_uint_lt(n, 100000);
	ctl_set_fini(&s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ctl_entry");
	TCase *t = tcase_create("all");
	tcase_add_test(t, names_for_people);
	tcase_add_test(t, names_of_the_command_line);
	tcase_add_test(t, text_of_faults);
	tcase_add_test(t, sets);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
