-- Answers by idempotency key. bound: digest of who asks for what. The answer is the status alone, the
-- status with the metadata file at `location`, or the bytes in `answer`.
CREATE TABLE frazil.idem (
	key uuid PRIMARY KEY,
	bound bytea NOT NULL,
	status int2 NOT NULL,
	location text COLLATE "C",
	answer bytea,
	created_ms int8 NOT NULL
);
CREATE INDEX idem_age ON frazil.idem (created_ms);
CREATE INDEX idem_location ON frazil.idem (location) WHERE location IS NOT NULL;

-- The last step of a deciding statement. A key that is there undoes all of it: FZ010. One that a
-- statement on its way has written is waited for. Last, so that nobody waits for a lock behind it.
CREATE FUNCTION frazil.remember(p_key uuid, p_bound bytea, p_status int2, p_location text,
	p_answer bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF p_key IS NULL THEN
		RETURN true;
	END IF;
	INSERT INTO frazil.idem (key, bound, status, location, answer, created_ms)
	VALUES (p_key, p_bound, p_status, p_location, p_answer, frazil.now_ms())
	ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the idempotency key is decided' USING ERRCODE = 'FZ010';
	END IF;
	RETURN true;
END
$$;

-- An answer that no statement decided. False: the key has another one.
CREATE FUNCTION frazil.keep_answer(p_key uuid, p_bound bytea, p_status int2, p_location text,
	p_answer bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO frazil.idem (key, bound, status, location, answer, created_ms)
	VALUES (p_key, p_bound, p_status, p_location, p_answer, frazil.now_ms())
	ON CONFLICT DO NOTHING;
	RETURN FOUND;
END
$$;

-- Forgets what is older than the lifetime, at most p_max rows; returns how many.
CREATE FUNCTION frazil.forget_answers(p_lifetime int8, p_max int8) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
	v_n int8;
BEGIN
	DELETE FROM frazil.idem i WHERE i.key IN (
		SELECT q.key FROM frazil.idem q WHERE q.created_ms <= frazil.now_ms() - p_lifetime
		ORDER BY q.created_ms LIMIT p_max FOR UPDATE SKIP LOCKED);
	GET DIAGNOSTICS v_n = ROW_COUNT;
	RETURN v_n;
END
$$;

-- No cleaner claims a file that a kept answer is made from: the row stays queued until the answer is
-- forgotten.
CREATE FUNCTION frazil.spare_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM frazil.idem i WHERE i.location = NEW.path) THEN
		RETURN NULL;
	END IF;
	RETURN NEW;
END
$$;
CREATE TRIGGER spare_answers BEFORE UPDATE OF state ON frazil.object
FOR EACH ROW WHEN (NEW.state = 3) EXECUTE FUNCTION frazil.spare_answers();
