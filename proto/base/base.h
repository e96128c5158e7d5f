/* Compiler attributes, assertions, checked arithmetic and endian access: what every file may use.
 * Pure, no state. Assertions stay on in every build and are for our own bugs only, never for input. */
#ifndef PROTO_BASE_BASE_H
#define PROTO_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Prints the condition and aborts. A crash is recoverable (the durable state decides), a wrong
 * answer is not. */
#define ASSERT(cond) ((cond) ? (void)0 : base_assert_fail(#cond, __FILE__, __LINE__))
/* A place that cannot be reached; says why. */
#define ASSERT_NEVER(why) base_assert_fail(why, __FILE__, __LINE__)
NORETURN void base_assert_fail(const char *cond, const char *file, int line);

/* Small fixed allocations: abort when memory is gone. Input-sized memory uses arena or buf. */
void *base_alloc(size_t n) __attribute__((malloc, returns_nonnull));
void *base_calloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
/* Grows an array of our own making (never one whose length comes from input); aborts on overflow. */
void *base_realloc_array(void *own_p, size_t count, size_t size) __attribute__((returns_nonnull));
void base_free(void *own_p);

/* Whether the system refused input-sized memory to this thread since the reset. What a decoder then
 * says about the size or form of its input is not to be believed: see err_memory. Arena, buf and json
 * note it. */
void base_memory_reset(void);
bool base_memory_failed(void);
void base_memory_note(void);

/* false when the result would not fit; *ret_v is then untouched. */
static inline bool add_size(size_t a, size_t b, size_t *ret_v)
{
	size_t v;
	if (__builtin_add_overflow(a, b, &v))
		return false;
	*ret_v = v;
	return true;
}

static inline bool mul_size(size_t a, size_t b, size_t *ret_v)
{
	size_t v;
	if (__builtin_mul_overflow(a, b, &v))
		return false;
	*ret_v = v;
	return true;
}

static inline bool add_i64(int64_t a, int64_t b, int64_t *ret_v)
{
	int64_t v;
	if (__builtin_add_overflow(a, b, &v))
		return false;
	*ret_v = v;
	return true;
}

/* Endian access by byte, so that no pointer needs alignment. */
static inline uint32_t get_u32le(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint32_t get_u32be(const uint8_t *p)
{
	return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}
static inline uint16_t get_u16le(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint64_t get_u64le(const uint8_t *p)
{
	return (uint64_t)get_u32le(p) | (uint64_t)get_u32le(p + 4) << 32;
}
static inline uint64_t get_u64be(const uint8_t *p)
{
	return (uint64_t)get_u32be(p) << 32 | (uint64_t)get_u32be(p + 4);
}
static inline void put_u16le(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}
static inline void put_u32le(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}
static inline void put_u32be(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}
static inline void put_u64le(uint8_t *p, uint64_t v)
{
	put_u32le(p, (uint32_t)v);
	put_u32le(p + 4, (uint32_t)(v >> 32));
}
static inline void put_u64be(uint8_t *p, uint64_t v)
{
	put_u32be(p, (uint32_t)(v >> 32));
	put_u32be(p + 4, (uint32_t)v);
}

#endif
