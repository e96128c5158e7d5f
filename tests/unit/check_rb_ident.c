/* Namespaces, identifiers and page tokens of REST bodies. */
#include "proto/rest/rb_ident.h"
#include "proto/rest/rb_config.h"
#include "tests/unit/unit.h"

static struct arena arena;
static struct err err;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
	err = (struct err){0};
}
static void teardown(void)
{
	arena_fini(&arena);
}

static const struct jval *parse(const char *text, struct jdoc **ret_doc)
{
	UNIT_OK(rb_open((struct bytes){(const uint8_t *)text, strlen(text)}, ret_doc, &err), &err);
	return jdoc_root(*ret_doc);
}

START_TEST(open_wants_an_object)
{
	static const char *const bad[] = {"", "[]", "null", "{} {}", "{\"a\":1,\"a\":2}", "{"};
	struct jdoc *doc = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bytes b = {(const uint8_t *)bad[i], strlen(bad[i])};
		UNIT_STATUS(rb_open(b, &doc, &err), ST_BAD_REQUEST);
		ck_assert_ptr_null(doc);
	}
}
END_TEST

START_TEST(identifiers)
{
	struct jdoc *doc;
	struct rb_ident x, y;
	/* From the specification's rename example. */
	const struct jval *root = parse("{\"source\":{\"namespace\":[\"accounting\",\"tax\"],"
					"\"name\":\"paid\"},\"destination\":{\"namespace\":"
					"[\"accounting\",\"tax\"],\"name\":\"owed\"}}",
					&doc);
	UNIT_OK(rb_ident_parse(jval_get(root, "source"), "source", &arena, &x, &err), &err);
	UNIT_OK(rb_ident_parse(jval_get(root, "destination"), "destination", &arena, &y, &err),
		&err);
	ck_assert_uint_eq(x.n_levels, 2);
	ck_assert(strv_eq(x.levels[1], STRV("tax")));
	ck_assert(strv_eq(x.name, STRV("paid")));
	ck_assert(rb_ident_eq(&x, &x));
	ck_assert(!rb_ident_eq(&x, &y));
	jdoc_free(doc);
}
END_TEST

START_TEST(identifiers_refused)
{
	static const struct {
		const char *text, *field;
	} bad[] = {
		{"{\"t\":{}}", "t.namespace"},
		{"{\"t\":[]}", "t"},
		{"{\"t\":{\"namespace\":[],\"name\":\"x\"}}", "t.namespace"},
		{"{\"t\":{\"namespace\":[1],\"name\":\"x\"}}", "t.namespace[0]"},
		{"{\"t\":{\"namespace\":\"a\",\"name\":\"x\"}}", "t.namespace"},
		{"{\"t\":{\"namespace\":[\"a\"]}}", "t.name"},
		{"{\"t\":{\"namespace\":[\"a\"],\"name\":\"\"}}", "t.name"},
		{"{\"t\":{\"namespace\":[\"a\",\"\"],\"name\":\"x\"}}", "t.namespace"},
		{"{\"t\":{\"namespace\":[\"a\\u001fb\"],\"name\":\"x\"}}", "t.namespace"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct jdoc *doc;
		struct rb_ident x;
		const struct jval *root = parse(bad[i].text, &doc);
		err = (struct err){0};
		UNIT_STATUS(rb_ident_parse(jval_get(root, "t"), "t", &arena, &x, &err),
			    ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, bad[i].field);
		jdoc_free(doc);
	}
}
END_TEST

START_TEST(names)
{
	char long_name[RB_NAME_BYTES_MAX + 1];
	struct strv many[RB_LEVELS_MAX + 1];
	memset(long_name, 'x', sizeof long_name);
	ck_assert(rb_name_possible(STRV("a/b %2F.\xc3\xa4\x1f")));
	ck_assert(rb_name_possible((struct strv){long_name, RB_NAME_BYTES_MAX}));
	ck_assert(!rb_name_possible((struct strv){long_name, RB_NAME_BYTES_MAX + 1}));
	ck_assert(!rb_name_possible(STRV("")));
	ck_assert(!rb_name_possible(STRV("a\0b")));
	ck_assert(!rb_name_possible(STRV("\xff")));
	for (size_t i = 0; i <= RB_LEVELS_MAX; i++)
		many[i] = STRV("n");
	ck_assert(rb_levels_possible(many, RB_LEVELS_MAX));
	ck_assert(!rb_levels_possible(many, RB_LEVELS_MAX + 1));
	ck_assert(!rb_levels_possible(many, 0));
	for (size_t i = 0; i < 7; i++)
		many[i] = (struct strv){long_name, RB_NAME_BYTES_MAX};
	ck_assert(rb_levels_possible(many, 6));
	ck_assert(!rb_levels_possible(many, 7)); /* 1792 bytes in all */
}
END_TEST

START_TEST(dotted)
{
	const struct strv levels[] = {STRV("accounting"), STRV("t\xc3\xa4x")};
	char out[64];
	rb_dotted(levels, 2, STRV("paid"), out, sizeof out);
	ck_assert_str_eq(out, "accounting.t\xc3\xa4x.paid");
	rb_dotted(levels, 2, STRV(""), out, sizeof out);
	ck_assert_str_eq(out, "accounting.t\xc3\xa4x");
	rb_dotted(levels, 2, STRV("paid"), out, 14); /* would end within the a with dots */
	ck_assert_str_eq(out, "accounting.t");
	rb_dotted(levels, 2, STRV("paid"), out, 5);
	ck_assert_str_eq(out, "acco");
	rb_dotted(levels, 0, STRV("paid"), out, sizeof out);
	ck_assert_str_eq(out, "paid");
}
END_TEST

START_TEST(tokens)
{
#define LIST UINT64_C(0x0123456789abcdef)
#define HEAD "20123456789abcdef"
	static const char *const bad[] = {"2", "1616263", "abc", HEAD, HEAD "6", HEAD "61626",
					  HEAD "6162XX", HEAD "ff", HEAD "00",
					  "00123456789abcdef6162", "20123456789abcdee6162",
					  "20123456789ABCDEF6162"};
	const struct strv name = STRV("a/\xc3\xa4 ");
	struct strv after;
	struct buf b;
	buf_init(&b, 1024);
	rb_token_write(&b, LIST, name);
	UNIT_OK(rb_token_parse(buf_strv(&b), LIST, &arena, &after, &err), &err);
	ck_assert(strv_eq(after, name));
	for (size_t i = 0; i < b.n; i++) /* nothing that a query would have to escape */
		ck_assert_ptr_nonnull(strchr("0123456789abcdef", b.p[i]));
	buf_fini(&b);
	UNIT_OK(rb_token_parse(STRV(""), LIST, &arena, &after, &err), &err);
	ck_assert_uint_eq(after.n, 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		UNIT_STATUS(rb_token_parse(strv_of(bad[i]), LIST, &arena, &after, &err),
			    ST_BAD_REQUEST);
}
END_TEST

START_TEST(lists)
{
	/* Each is another list than all others. */
	const struct strv a_bc[] = {STRV("a"), STRV("bc")}, ab_c[] = {STRV("ab"), STRV("c")};
	const uint64_t ids[] = {
		rb_list_id(STRV("tables"), STRV("w"), a_bc, 2),
		rb_list_id(STRV("views"), STRV("w"), a_bc, 2),
		rb_list_id(STRV("tables"), STRV("v"), a_bc, 2),
		rb_list_id(STRV("tables"), STRV("w"), ab_c, 2),
		rb_list_id(STRV("tables"), STRV("w"), a_bc, 1),
		rb_list_id(STRV("tables"), STRV("w"), a_bc, 0),
		rb_list_id(STRV("tablesw"), STRV(""), a_bc, 0),
	};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		for (size_t k = 0; k < i; k++)
			ck_assert_uint_ne(ids[i], ids[k]);
	ck_assert_uint_eq(ids[0], rb_list_id(STRV("tables"), STRV("w"), a_bc, 2));
}
END_TEST

START_TEST(config)
{
	/* The specification's shape; the prefix goes into paths as it stands. */
	const struct strv endpoints[] = {STRV("GET /v1/{prefix}/namespaces")};
	struct buf b;
	buf_init(&b, 1024);
	rb_config_write(&b, (struct strv){NULL, 0}, endpoints, 1, (struct strv){NULL, 0});
	ck_assert(strv_eq(buf_strv(&b), STRV("{\"defaults\":{},\"overrides\":{},\"endpoints\":"
					     "[\"GET /v1/{prefix}/namespaces\"]}")));
	buf_clear(&b);
	rb_config_write(&b, STRV("a b/\xc3\xa4"), endpoints, 0, STRV("PT30M"));
	ck_assert(strv_eq(buf_strv(&b),
			  STRV("{\"defaults\":{},\"overrides\":{\"prefix\":\"a%20b%2F%C3%A4\"},"
			       "\"endpoints\":[],\"idempotency-key-lifetime\":\"PT30M\"}")));
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rb_ident");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, open_wants_an_object);
	tcase_add_test(t, identifiers);
	tcase_add_test(t, identifiers_refused);
	tcase_add_test(t, names);
	tcase_add_test(t, dotted);
	tcase_add_test(t, tokens);
	tcase_add_test(t, lists);
	tcase_add_test(t, config);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
