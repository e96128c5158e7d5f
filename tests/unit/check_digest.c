#include "proto/base/digest.h"
#include "tests/unit/unit.h"

static struct bytes of(const char *text)
{
	return strv_bytes(strv_of(text));
}

static void is_hex(const struct digest *d, const char *want)
{
	struct buf b;
	buf_init(&b, 100);
	digest_hex(&b, (struct bytes){d->b, sizeof d->b});
	ck_assert(strv_eq(buf_strv(&b), strv_of(want)));
	buf_fini(&b);
}

/* FIPS 180-4 examples. */
START_TEST(sha256)
{
	struct digest d = digest_sha256((struct bytes){NULL, 0});
	is_hex(&d, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	d = digest_sha256(of("abc"));
	is_hex(&d, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	d = digest_sha256(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
	is_hex(&d, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	/* A million times "a", in pieces that do not fit the block size. */
	struct digest_ctx c;
	char part[1000];
	memset(part, 'a', sizeof part);
	digest_init(&c);
	for (int i = 0; i < 1000; i++) {
		digest_add(&c, (struct bytes){(const uint8_t *)part, 333});
		digest_add(&c, (struct bytes){NULL, 0});
		digest_add(&c, (struct bytes){(const uint8_t *)part, 667});
	}
	d = digest_fini(&c);
	is_hex(&d, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* RFC 4231, cases 1, 2, 3 and 6. */
START_TEST(hmac)
{
	uint8_t key[131], data[50];
	struct digest d;
	memset(key, 0x0b, 20);
	d = digest_hmac((struct bytes){key, 20}, of("Hi There"));
	is_hex(&d, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	d = digest_hmac(of("Jefe"), of("what do ya want for nothing?"));
	is_hex(&d, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	memset(data, 0xdd, sizeof data);
	d = digest_hmac((struct bytes){key, 20}, (struct bytes){data, 50});
	is_hex(&d, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	d = digest_hmac((struct bytes){key, 131},
			of("Test Using Larger Than Block-Size Key - Hash Key First"));
	is_hex(&d, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
END_TEST

/* RFC 3720, appendix B.4; every split of the data gives the same sum. */
START_TEST(crc32c)
{
	uint8_t zero[32] = {0}, ones[32], up[32], down[32];
	static const uint8_t pdu[48] = {0x01,        0xc0,        [16] = 0x14, [22] = 0x04,
					[27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
	for (uint8_t i = 0; i < 32; i++) {
		ones[i] = 0xff;
		up[i] = i;
		down[i] = (uint8_t)(31 - i);
	}
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){zero, 32}), 0x8a9136aau);
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){ones, 32}), 0x62a8ab43u);
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){up, 32}), 0x46dd794eu);
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){down, 32}), 0x113fdb5cu);
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){pdu, 48}), 0xd9963a56u);
	ck_assert_uint_eq(digest_crc32c(0, of("123456789")), 0xe3069283u);
	ck_assert_uint_eq(digest_crc32c(0, (struct bytes){NULL, 0}), 0);
	for (size_t cut = 0; cut <= 48; cut++) {
		uint32_t first = digest_crc32c(0, (struct bytes){pdu, cut});
		ck_assert_uint_eq(digest_crc32c(first, (struct bytes){pdu + cut, 48 - cut}),
				  0xd9963a56u);
	}
}
END_TEST

/* The check value of the CRC-32 that gzip and PNG use. */
START_TEST(crc32)
{
	ck_assert_uint_eq(digest_crc32(0, of("123456789")), 0xcbf43926u);
	ck_assert_uint_eq(digest_crc32(digest_crc32(0, of("1234")), of("56789")), 0xcbf43926u);
	ck_assert_uint_eq(digest_crc32(0xcbf43926u, (struct bytes){NULL, 0}), 0xcbf43926u);
}
END_TEST

/* RFC 4648, section 10. */
START_TEST(base64)
{
	static const char *const pairs[][2] = {{"", ""},
					       {"f", "Zg=="},
					       {"fo", "Zm8="},
					       {"foo", "Zm9v"},
					       {"foob", "Zm9vYg=="},
					       {"fooba", "Zm9vYmE="},
					       {"foobar", "Zm9vYmFy"}};
	struct buf b;
	buf_init(&b, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		buf_clear(&b);
		digest_base64(&b, of(pairs[i][0]));
		ck_assert(strv_eq(buf_strv(&b), strv_of(pairs[i][1])));
		buf_clear(&b);
		ck_assert(digest_unbase64(&b, strv_of(pairs[i][1])));
		ck_assert(strv_eq(buf_strv(&b), strv_of(pairs[i][0])));
	}
	static const char *const bad[] = {
		"Zg",     "Zg=",  "Zg===", "=Zg=", "Zg==Zg==", "Zh==", "Zm9=",     "Zm9v ", "Zm 9v",
		"Zm9v\n", "Zm9-", "Zm9_",  "====", "Z===",     "*m9v", "Zm8=Zm8=", "Zg=a"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		buf_clear(&b);
		ck_assert_msg(!digest_unbase64(&b, strv_of(bad[i])), "%s", bad[i]);
	}
	buf_clear(&b);
	ck_assert(!digest_unbase64(&b, STRV("Zm\0v")));
	/* All byte values come back. */
	uint8_t all[256];
	for (size_t i = 0; i < sizeof all; i++)
		all[i] = (uint8_t)i;
	struct buf back;
	buf_init(&back, 256);
	buf_clear(&b);
	digest_base64(&b, (struct bytes){all, sizeof all});
	ck_assert(digest_unbase64(&back, buf_strv(&b)));
	ck_assert(bytes_eq(buf_bytes(&back), (struct bytes){all, sizeof all}));
	/* A full buffer is a failure, not a cut result. */
	buf_fini(&back);
	buf_init(&back, 255);
	ck_assert(!digest_unbase64(&back, buf_strv(&b)));
	buf_fini(&back);
	buf_fini(&b);
}
END_TEST

START_TEST(secrets)
{
	ck_assert(digest_eq_secret(of("token"), of("token")));
	ck_assert(!digest_eq_secret(of("token"), of("tokem")));
	ck_assert(!digest_eq_secret(of("token"), of("toke")));
	ck_assert(digest_eq_secret((struct bytes){NULL, 0}, of("")));
	uint8_t a[32] = {0}, c[32] = {0};
	digest_random(a, sizeof a);
	digest_random(c, sizeof c);
	ck_assert_int_ne(memcmp(a, c, sizeof a), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("digest");
	TCase *t = tcase_create("digest");
	tcase_add_test(t, sha256);
	tcase_add_test(t, hmac);
	tcase_add_test(t, crc32c);
	tcase_add_test(t, crc32);
	tcase_add_test(t, base64);
	tcase_add_test(t, secrets);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
