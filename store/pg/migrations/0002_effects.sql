-- The durable steps that judge or collect rows of more than one table. One call is one transaction.
--
-- Locks are taken in the order head, horizon, txn, object and in key order within each, so that no
-- two calls wait for each other. What is collected after a lock wait is read by a later statement:
-- the one that waited still sees the old snapshot.
--
-- Codes of an item: 0 done or already so, 1 table gone, 2 horizon passed, 3 clock skew, 4 digest
-- conflict, 5 transaction unknown, 6 transaction state, 7 duplicate path, 8 path condemned.

CREATE FUNCTION frazil.now_ms() RETURNS int8 LANGUAGE sql VOLATILE AS $$
	SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8
$$;

-- The time in a version 7 id: its first 48 bits.
CREATE FUNCTION frazil.uuid_ms(p uuid) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$
	SELECT ('x' || translate(left(p::text, 13), '-', ''))::bit(48)::int8
$$;

CREATE TYPE frazil.item AS (ord int4, code int2, path text, fresh boolean, t frazil.txn);

-- Begin, and the first half of Once (p_digest not null: the row is born sealed with commit
-- requested). A repeated Begin finds its row; other parameters are a conflict that shows nothing.
CREATE FUNCTION frazil.begin_items(p_txn uuid[], p_table uuid[], p_incarnation int8[],
	p_ref text[], p_kind int4[], p_isolation int4[], p_read int8[], p_principal text[],
	p_params bytea[], p_begin bytea[], p_ttl int8[], p_digest bytea[], p_seal bytea[],
	p_summary bytea[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	x record;
	r frazil.item;
	v_t frazil.txn;
	v_new uuid[];
	v_now int8;
	v_id_ms int8;
BEGIN
	PERFORM 1 FROM frazil.head h WHERE h.table_id = ANY (p_table)
		ORDER BY h.table_id FOR KEY SHARE;
	PERFORM 1 FROM frazil.horizon h WHERE h.table_id = ANY (p_table)
		ORDER BY h.table_id FOR SHARE;
	v_now := frazil.now_ms();
	-- Nearly always all are new: one statement for all of them, and only the others one by one.
	WITH made AS (
		INSERT INTO frazil.txn (txn, table_id, incarnation, ref, kind, isolation,
			read_snapshot, principal, params, begin_msg, ttl_ms, created_ms, expires_ms,
			state, commit_requested, set_digest, seal, summary, id_ms)
		SELECT DISTINCT ON (u.txn) u.txn, u.table_id, u.incarnation, u.ref, u.kind,
			u.isolation, u.read, u.principal, u.params, u.begin_msg, u.ttl, v_now,
			v_now + u.ttl, CASE WHEN u.digest IS NULL THEN 0 ELSE 1 END,
			u.digest IS NOT NULL, u.digest, u.seal, u.summary, frazil.uuid_ms(u.txn)
		FROM unnest(p_txn, p_table, p_incarnation, p_ref, p_kind, p_isolation,
			p_read, p_principal, p_params, p_begin, p_ttl, p_digest, p_seal, p_summary)
			WITH ORDINALITY AS u(txn, table_id, incarnation, ref, kind, isolation, read,
			principal, params, begin_msg, ttl, digest, seal, summary, ord)
		JOIN frazil.head h ON h.table_id = u.table_id AND h.incarnation = u.incarnation
		LEFT JOIN frazil.horizon z ON z.table_id = u.table_id
		WHERE frazil.uuid_ms(u.txn) <= v_now + 600000
			AND (z.closed_before IS NULL OR frazil.uuid_ms(u.txn) >= z.closed_before)
		ORDER BY u.txn, u.ord
		ON CONFLICT DO NOTHING RETURNING txn
	)
	SELECT coalesce(array_agg(m.txn), '{}') INTO v_new FROM made m;
	IF cardinality(v_new) = cardinality(p_txn) THEN
		RETURN QUERY SELECT u.ord::int4, 0::int2, NULL::text, true, t
		FROM unnest(p_txn) WITH ORDINALITY AS u(txn, ord)
		JOIN frazil.txn t ON t.txn = u.txn;
		RETURN;
	END IF;
	FOR x IN SELECT u.*, u.txn = ANY (v_new) AND row_number()
			OVER (PARTITION BY u.txn ORDER BY u.ord) = 1 AS fresh
			FROM unnest(p_txn, p_table, p_incarnation, p_ref, p_kind, p_isolation,
			p_read, p_principal, p_params, p_begin, p_ttl, p_digest, p_seal, p_summary)
			WITH ORDINALITY AS u(txn, table_id, incarnation, ref, kind, isolation, read,
			principal, params, begin_msg, ttl, digest, seal, summary, ord)
			ORDER BY u.txn, u.ord
	LOOP
		r := NULL;
		r.ord := x.ord;
		r.code := 0;
		r.fresh := x.fresh;
		SELECT * INTO v_t FROM frazil.txn t WHERE t.txn = x.txn FOR UPDATE;
		IF x.fresh THEN
			r.t := v_t;
			RETURN NEXT r;
			CONTINUE;
		END IF;
		IF NOT FOUND THEN
			v_id_ms := frazil.uuid_ms(x.txn);
			IF NOT EXISTS (SELECT FROM frazil.head h WHERE h.table_id = x.table_id
					AND h.incarnation = x.incarnation) THEN
				r.code := 1;
			ELSIF v_id_ms < (SELECT h.closed_before FROM frazil.horizon h
					WHERE h.table_id = x.table_id) THEN
				r.code := 2;
			ELSIF v_id_ms > v_now + 600000 THEN
				r.code := 3;
			END IF;
			IF r.code <> 0 THEN
				RETURN NEXT r;
				CONTINUE;
			END IF;
			INSERT INTO frazil.txn (txn, table_id, incarnation, ref, kind, isolation,
				read_snapshot, principal, params, begin_msg, ttl_ms, created_ms, expires_ms,
				state, commit_requested, set_digest, seal, summary, id_ms)
			VALUES (x.txn, x.table_id, x.incarnation, x.ref, x.kind, x.isolation, x.read,
				x.principal, x.params, x.begin_msg, x.ttl, v_now, v_now + x.ttl,
				CASE WHEN x.digest IS NULL THEN 0 ELSE 1 END, x.digest IS NOT NULL,
				x.digest, x.seal, x.summary, v_id_ms)
			ON CONFLICT DO NOTHING RETURNING * INTO v_t;
			IF FOUND THEN
				r.fresh := true;
				r.t := v_t;
				RETURN NEXT r;
				CONTINUE;
			END IF;
			SELECT * INTO v_t FROM frazil.txn t WHERE t.txn = x.txn FOR UPDATE;
		END IF;
		IF v_t.table_id <> x.table_id OR v_t.principal <> x.principal
				OR v_t.params <> x.params THEN
			r.code := 4;
			RETURN NEXT r;
			CONTINUE;
		END IF;
		IF v_t.state = 0 THEN
			UPDATE frazil.txn t SET expires_ms = greatest(t.expires_ms, v_now + t.ttl_ms)
				WHERE t.txn = x.txn RETURNING * INTO v_t;
		END IF;
		r.t := v_t;
		RETURN NEXT r;
	END LOOP;
END
$$;

-- Takes paths for transactions whose rows the caller has locked. Items are judged in the order of
-- their number; returns those refused. Rows that are not there are inserted first, in path order,
-- then all are locked, in path order.
CREATE FUNCTION frazil.stage_paths(p_ord int4[], p_txn uuid[], p_path text[])
RETURNS TABLE (ord int4, code int2, path text) LANGUAGE plpgsql AS $$
DECLARE
	x record;
	v_new text[] := '{}';
	v_add text[];
	v_have int8;
	v_want int8;
	v_now int8 := frazil.now_ms();
BEGIN
	IF coalesce(cardinality(p_path), 0) = 0 THEN
		RETURN;
	END IF;
	SELECT count(DISTINCT u.path) INTO v_want FROM unnest(p_path) u(path);
	LOOP
		WITH want AS (
			SELECT DISTINCT ON (u.path COLLATE "C") u.path COLLATE "C" AS path, u.txn
			FROM unnest(p_ord, p_txn, p_path) u(ord, txn, path)
			ORDER BY u.path COLLATE "C", u.ord
		), added AS (
			INSERT INTO frazil.object AS o (path, table_id, owner, state, since_ms)
			SELECT w.path, t.table_id, w.txn, 0, v_now
			FROM want w JOIN frazil.txn t ON t.txn = w.txn ORDER BY w.path
			ON CONFLICT DO NOTHING RETURNING o.path
		)
		SELECT coalesce(array_agg(a.path), '{}') INTO v_add FROM added a;
		v_new := v_new || v_add;
		-- All new, each wanted once: nobody else knows these rows.
		IF cardinality(v_new) = cardinality(p_path) THEN
			RETURN;
		END IF;
		SELECT count(*) INTO v_have FROM (SELECT 1 FROM frazil.object o
			WHERE o.path = ANY (p_path) ORDER BY o.path FOR UPDATE) q;
		EXIT WHEN v_have = v_want;
	END LOOP;
	IF NOT EXISTS (SELECT FROM unnest(p_txn, p_path) u(txn, path)
			JOIN frazil.object o ON o.path = u.path
			WHERE o.state <> 0 OR o.owner IS DISTINCT FROM u.txn) THEN
		RETURN;
	END IF;
	-- Somebody is in the way: our own new rows become free places (-1, never committed) and the
	-- items go one by one.
	UPDATE frazil.object o SET state = -1 WHERE o.path = ANY (v_new);
	FOR x IN SELECT u.ord, u.txn, array_agg(u.path) AS paths
			FROM unnest(p_ord, p_txn, p_path) u(ord, txn, path)
			GROUP BY u.ord, u.txn ORDER BY u.ord
	LOOP
		-- A final state never changes, so the other owner's row needs no lock.
		SELECT o.path, CASE WHEN o.state = 3 THEN 8 ELSE 7 END INTO path, code
		FROM frazil.object o WHERE o.path = ANY (x.paths) AND (o.state IN (1, 3)
			OR (o.state = 0 AND o.owner <> x.txn AND EXISTS (SELECT FROM frazil.txn t
				WHERE t.txn = o.owner AND t.state <= 1)))
		ORDER BY o.path LIMIT 1;
		IF FOUND THEN
			ord := x.ord;
			RETURN NEXT;
		ELSE
			UPDATE frazil.object o SET state = 0, owner = x.txn, epoch = 0,
				table_id = (SELECT t.table_id FROM frazil.txn t WHERE t.txn = x.txn),
				since_ms = v_now
			WHERE o.path = ANY (x.paths);
		END IF;
	END LOOP;
	DELETE FROM frazil.object o WHERE o.path = ANY (v_new) AND o.state = -1;
END
$$;

-- p_path_ord: number of the item that brings the path, from 1.
CREATE FUNCTION frazil.stage_items(p_txn uuid[], p_fragment text[], p_attempt int4[],
	p_digest bytea[], p_payload bytea[], p_path_ord int4[], p_path text[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	x record;
	v_t frazil.txn;
	v_digest bytea;
	v_now int8;
	v_code int2[] := array_fill(0::int2, ARRAY[cardinality(p_txn)]);
	v_path text[] := array_fill(NULL::text, ARRAY[cardinality(p_txn)]);
	v_try int4[] := '{}';
BEGIN
	PERFORM 1 FROM frazil.txn t WHERE t.txn = ANY (p_txn) ORDER BY t.txn FOR UPDATE;
	v_now := frazil.now_ms();
	FOR x IN SELECT u.* FROM unnest(p_txn, p_fragment, p_attempt, p_digest)
			WITH ORDINALITY AS u(txn, fragment_id, attempt, digest, ord) ORDER BY u.ord
	LOOP
		SELECT * INTO v_t FROM frazil.txn t WHERE t.txn = x.txn;
		IF NOT FOUND THEN
			v_code[x.ord] := 5;
		ELSIF v_t.state > 1 THEN
			v_code[x.ord] := 6;
		ELSE
			SELECT f.digest INTO v_digest FROM frazil.fragment f WHERE f.txn = x.txn
				AND f.fragment_id = x.fragment_id AND f.attempt = x.attempt;
			IF FOUND THEN
				v_code[x.ord] := CASE WHEN v_digest = x.digest THEN 0 ELSE 4 END;
			ELSIF v_t.state = 1 THEN
				v_code[x.ord] := 6;
			ELSE
				v_try := v_try || x.ord::int4;
			END IF;
		END IF;
	END LOOP;
	FOR x IN SELECT s.* FROM (
			SELECT array_agg(u.ord) AS ords, array_agg(p_txn[u.ord]) AS txns,
				array_agg(u.path) AS paths
			FROM unnest(p_path_ord, p_path) u(ord, path) WHERE u.ord = ANY (v_try)) a,
			LATERAL frazil.stage_paths(a.ords, a.txns, a.paths) s
	LOOP
		v_code[x.ord] := x.code;
		v_path[x.ord] := x.path;
	END LOOP;
	INSERT INTO frazil.fragment (txn, fragment_id, attempt, digest, payload)
	SELECT u.txn, u.fragment_id, u.attempt, u.digest, u.payload
	FROM unnest(p_txn, p_fragment, p_attempt, p_digest, p_payload)
		WITH ORDINALITY AS u(txn, fragment_id, attempt, digest, payload, ord)
	WHERE u.ord = ANY (v_try) AND v_code[u.ord] = 0 ORDER BY u.ord
	ON CONFLICT DO NOTHING;
	-- The same fragment twice in one call: the first one counts.
	FOR x IN SELECT u.ord FROM unnest(p_txn, p_fragment, p_attempt, p_digest)
			WITH ORDINALITY AS u(txn, fragment_id, attempt, digest, ord)
			JOIN frazil.fragment f USING (txn, fragment_id, attempt)
			WHERE u.ord = ANY (v_try) AND v_code[u.ord] = 0 AND f.digest <> u.digest
	LOOP
		v_code[x.ord] := 4;
	END LOOP;
	UPDATE frazil.txn t SET expires_ms = greatest(t.expires_ms, v_now + t.ttl_ms)
	WHERE t.state = 0 AND t.txn IN (SELECT u.txn FROM unnest(p_txn)
		WITH ORDINALITY AS u(txn, ord) WHERE v_code[u.ord] = 0);
	RETURN QUERY SELECT u.ord::int4, v_code[u.ord], v_path[u.ord], false, t
	FROM unnest(p_txn) WITH ORDINALITY AS u(txn, ord)
	LEFT JOIN frazil.txn t ON t.txn = u.txn;
END
$$;

CREATE FUNCTION frazil.seal_items(p_txn uuid[], p_digest bytea[], p_seal bytea[],
	p_commit boolean[], p_summary bytea[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	x record;
	r frazil.item;
	v_t frazil.txn;
	v_now int8;
BEGIN
	PERFORM 1 FROM frazil.txn t WHERE t.txn = ANY (p_txn) ORDER BY t.txn FOR UPDATE;
	v_now := frazil.now_ms();
	FOR x IN SELECT u.* FROM unnest(p_txn, p_digest, p_seal, p_commit, p_summary)
			WITH ORDINALITY AS u(txn, digest, seal, ask, summary, ord) ORDER BY u.ord
	LOOP
		r := NULL;
		r.ord := x.ord;
		r.code := 0;
		r.fresh := false;
		SELECT * INTO v_t FROM frazil.txn t WHERE t.txn = x.txn;
		IF NOT FOUND THEN
			r.code := 5;
			RETURN NEXT r;
			CONTINUE;
		ELSIF v_t.set_digest IS NOT NULL THEN
			IF v_t.set_digest <> x.digest THEN
				r.code := 4;
			ELSIF x.ask AND v_t.state = 1 AND NOT v_t.commit_requested THEN
				UPDATE frazil.txn t SET commit_requested = true, summary = x.summary
					WHERE t.txn = x.txn RETURNING * INTO v_t;
			END IF;
		ELSIF v_t.state <> 0 THEN
			r.code := 6;
		ELSE
			UPDATE frazil.txn t SET state = 1, set_digest = x.digest, seal = x.seal,
				commit_requested = x.ask,
				summary = CASE WHEN x.ask THEN x.summary END,
				expires_ms = greatest(t.expires_ms, v_now + t.ttl_ms)
			WHERE t.txn = x.txn RETURNING * INTO v_t;
			r.fresh := true;
		END IF;
		r.t := v_t;
		RETURN NEXT r;
	END LOOP;
END
$$;

-- Begin, Stage and Seal with commit requested in one: p_stage_ord names the item of a fragment,
-- p_path_ord that of a path. A refused item leaves nothing behind.
CREATE FUNCTION frazil.once_items(p_txn uuid[], p_table uuid[], p_incarnation int8[],
	p_ref text[], p_kind int4[], p_isolation int4[], p_read int8[], p_principal text[],
	p_params bytea[], p_begin bytea[], p_ttl int8[], p_digest bytea[], p_seal bytea[],
	p_summary bytea[], p_stage_ord int4[], p_fragment text[], p_attempt int4[],
	p_fdigest bytea[], p_payload bytea[], p_path_ord int4[], p_path text[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	x record;
	v_n int4 := cardinality(p_txn);
	v_code int2[] := array_fill(0::int2, ARRAY[v_n]);
	v_path text[] := array_fill(NULL::text, ARRAY[v_n]);
	v_fresh boolean[] := array_fill(false, ARRAY[v_n]);
	v_show boolean[] := array_fill(true, ARRAY[v_n]);
	v_try boolean[] := array_fill(false, ARRAY[v_n]);
	v_open boolean := false;
BEGIN
	FOR x IN SELECT b.ord, b.code, b.fresh, (b.t).state AS state, (b.t).set_digest AS set_digest
			FROM frazil.begin_items(p_txn, p_table, p_incarnation, p_ref, p_kind,
			p_isolation, p_read, p_principal, p_params, p_begin, p_ttl, p_digest, p_seal,
			p_summary) b
	LOOP
		v_code[x.ord] := x.code;
		v_fresh[x.ord] := x.fresh;
		IF x.code <> 0 THEN
			v_show[x.ord] := false;
		ELSIF x.fresh THEN
			v_try[x.ord] := true;
		ELSIF x.set_digest IS NOT NULL THEN
			IF x.set_digest <> p_digest[x.ord] THEN
				v_code[x.ord] := 4;
			END IF;
		ELSIF x.state <> 0 THEN
			v_code[x.ord] := 6;
		ELSIF EXISTS (SELECT FROM unnest(p_stage_ord, p_fragment, p_attempt, p_fdigest)
				u(ord, fragment_id, attempt, digest)
				JOIN frazil.fragment f ON f.txn = p_txn[x.ord]
				AND f.fragment_id = u.fragment_id AND f.attempt = u.attempt
				WHERE u.ord = x.ord AND f.digest <> u.digest) THEN
			v_code[x.ord] := 4;
		ELSE
			v_try[x.ord] := true;
			v_open := true;
		END IF;
	END LOOP;
	FOR x IN SELECT s.* FROM (
			SELECT array_agg(u.ord) AS ords, array_agg(p_txn[u.ord]) AS txns,
				array_agg(u.path) AS paths
			FROM unnest(p_path_ord, p_path) u(ord, path) WHERE v_try[u.ord]) a,
			LATERAL frazil.stage_paths(a.ords, a.txns, a.paths) s
	LOOP
		v_code[x.ord] := x.code;
		v_path[x.ord] := x.path;
		IF v_fresh[x.ord] THEN
			DELETE FROM frazil.txn t WHERE t.txn = p_txn[x.ord];
		END IF;
	END LOOP;
	INSERT INTO frazil.fragment (txn, fragment_id, attempt, digest, payload)
	SELECT p_txn[u.ord], u.fragment_id, u.attempt, u.digest, u.payload
	FROM unnest(p_stage_ord, p_fragment, p_attempt, p_fdigest, p_payload)
		u(ord, fragment_id, attempt, digest, payload)
	WHERE v_try[u.ord] AND v_code[u.ord] = 0
	ON CONFLICT DO NOTHING;
	-- Fresh rows were born sealed; one that a Begin had made is sealed here.
	IF v_open THEN
		UPDATE frazil.txn t SET state = 1, commit_requested = true, set_digest = u.digest,
			seal = u.seal, summary = u.summary
		FROM unnest(p_txn, p_digest, p_seal, p_summary) WITH ORDINALITY
			AS u(txn, digest, seal, summary, ord)
		WHERE t.txn = u.txn AND t.state = 0 AND v_try[u.ord] AND v_code[u.ord] = 0;
	END IF;
	RETURN QUERY SELECT u.ord::int4, v_code[u.ord], v_path[u.ord], v_fresh[u.ord], t
	FROM unnest(p_txn) WITH ORDINALITY AS u(txn, ord)
	LEFT JOIN frazil.txn t ON t.txn = u.txn AND v_show[u.ord];
END
$$;

CREATE FUNCTION frazil.request_items(p_txn uuid[], p_summary bytea[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.txn t WHERE t.txn = ANY (p_txn) ORDER BY t.txn FOR UPDATE;
	UPDATE frazil.txn t SET commit_requested = true, summary = u.summary
	FROM (SELECT DISTINCT ON (q.txn) q.txn, q.summary FROM unnest(p_txn, p_summary)
		WITH ORDINALITY AS q(txn, summary, ord) ORDER BY q.txn, q.ord) u
	WHERE t.txn = u.txn AND t.state = 1 AND NOT t.commit_requested;
	RETURN QUERY SELECT u.ord::int4, (CASE WHEN t.txn IS NULL THEN 5 WHEN t.state = 1 THEN 0
		ELSE 6 END)::int2, NULL::text, false, t
	FROM unnest(p_txn) WITH ORDINALITY AS u(txn, ord)
	LEFT JOIN frazil.txn t ON t.txn = u.txn;
END
$$;

-- What transactions staged and nobody can commit any more goes to the delete queue.
CREATE FUNCTION frazil.queue_staged(p_txn uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.object o WHERE o.owner = ANY (p_txn) AND o.state = 0
		ORDER BY o.path FOR UPDATE;
	UPDATE frazil.object o SET state = 2, since_ms = frazil.now_ms()
	WHERE o.owner = ANY (p_txn) AND o.state = 0;
END
$$;

-- p_to: 4 aborted or 5 expired; expiry is judged by this clock.
CREATE FUNCTION frazil.end_items(p_txn uuid[], p_to int2[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	v_now int8;
	v_ended uuid[];
BEGIN
	PERFORM 1 FROM frazil.txn t WHERE t.txn = ANY (p_txn) ORDER BY t.txn FOR UPDATE;
	v_now := frazil.now_ms();
	WITH ended AS (
		UPDATE frazil.txn t SET state = u.ends, final_ms = v_now
		FROM (SELECT DISTINCT ON (q.txn) q.txn, q.ends FROM unnest(p_txn, p_to)
			WITH ORDINALITY AS q(txn, ends, ord) JOIN frazil.txn w ON w.txn = q.txn
			WHERE q.ends = 4 OR w.expires_ms <= v_now ORDER BY q.txn, q.ord) u
		WHERE t.txn = u.txn AND t.state = 0 RETURNING t.txn
	)
	SELECT coalesce(array_agg(e.txn), '{}') INTO v_ended FROM ended e;
	PERFORM frazil.queue_staged(v_ended);
	RETURN QUERY SELECT u.ord::int4, (CASE WHEN t.txn IS NULL THEN 5 WHEN t.state = u.ends
		THEN 0 ELSE 6 END)::int2, NULL::text, t.txn = ANY (v_ended), t
	FROM unnest(p_txn, p_to) WITH ORDINALITY AS u(txn, ends, ord)
	LEFT JOIN frazil.txn t ON t.txn = u.txn;
END
$$;

-- Object rows before the first PUT. p_epoch < 0: a create, which has no head yet.
CREATE FUNCTION frazil.ledger(p_table uuid, p_incarnation int8, p_epoch int8, p_batch uuid,
	p_path text[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	v_n int8;
BEGIN
	IF p_epoch >= 0 THEN
		PERFORM 1 FROM frazil.head h WHERE h.table_id = p_table
			AND h.incarnation = p_incarnation AND h.epoch = p_epoch FOR SHARE;
		IF NOT FOUND THEN
			RETURN false;
		END IF;
	END IF;
	INSERT INTO frazil.object AS o (path, table_id, owner, epoch, state, since_ms)
	SELECT u.path, p_table, p_batch, p_epoch, 1, frazil.now_ms()
	FROM unnest(p_path) u(path) ORDER BY u.path COLLATE "C"
	ON CONFLICT (path) DO UPDATE SET epoch = greatest(o.epoch, excluded.epoch)
		WHERE o.state = 1 AND o.owner = p_batch;
	GET DIAGNOSTICS v_n = ROW_COUNT;
	-- Sent, lost, sent again and published: the first one arrives after its rows have left.
	IF v_n <> cardinality(p_path)
			OR EXISTS (SELECT FROM frazil.batch b WHERE b.batch = p_batch) THEN
		RAISE EXCEPTION 'a new object name is in use' USING ERRCODE = 'FZ002';
	END IF;
	RETURN true;
END
$$;

-- The ledger's part of a decision: rows of the batch that are now referenced go, rows of an earlier
-- attempt under the same batch id are queued.
CREATE FUNCTION frazil.settle_ledger(p_batch uuid, p_objects text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	v_n int8;
BEGIN
	PERFORM 1 FROM frazil.object o WHERE o.owner = p_batch AND o.state = 1
		ORDER BY o.path FOR UPDATE;
	DELETE FROM frazil.object o WHERE o.path = ANY (p_objects) AND o.owner = p_batch
		AND o.state = 1;
	GET DIAGNOSTICS v_n = ROW_COUNT;
	IF v_n <> cardinality(p_objects) THEN
		RAISE EXCEPTION 'an object of the batch is not in the ledger' USING ERRCODE = 'FZ002';
	END IF;
	UPDATE frazil.object o SET state = 2, since_ms = frazil.now_ms()
	WHERE o.owner = p_batch AND o.state = 1;
END
$$;

-- The durable decision. FZ001: a transaction was no longer sealed, all is undone.
CREATE FUNCTION frazil.publish(p_table uuid, p_incarnation int8, p_epoch int8, p_base int8,
	p_batch_no int8, p_batch uuid, p_txn uuid[], p_state int2[], p_outcomes bytea,
	p_snapshots int8[], p_first_row_id int8, p_added_rows int8, p_location text,
	p_last_seq int8, p_next_row_id int8, p_objects text[], p_expired text[])
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	v_now int8;
	v_n int8;
BEGIN
	UPDATE frazil.head h SET version = h.version + 1, metadata_location = p_location,
		last_batch = p_batch_no, last_seq = p_last_seq, next_row_id = p_next_row_id
	WHERE h.table_id = p_table AND h.incarnation = p_incarnation AND h.epoch = p_epoch
		AND h.version = p_base;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	v_now := frazil.now_ms();
	PERFORM 1 FROM frazil.txn t WHERE t.txn = ANY (p_txn) ORDER BY t.txn FOR UPDATE;
	UPDATE frazil.txn t SET state = u.state, batch_no = p_batch_no, final_ms = v_now
	FROM unnest(p_txn, p_state) u(txn, state)
	-- Written so that only the primary key fits: the index of live rows holds all that were.
	WHERE t.txn = u.txn AND t.state + 0 = 1 AND (t.table_id = p_table) IS TRUE
		AND t.incarnation = p_incarnation;
	GET DIAGNOSTICS v_n = ROW_COUNT;
	IF v_n <> cardinality(p_txn) THEN
		RAISE EXCEPTION 'a transaction of the batch is not sealed' USING ERRCODE = 'FZ001';
	END IF;
	INSERT INTO frazil.batch (batch, table_id, incarnation, batch_no, epoch, base_version, txns,
		txn_states, outcomes, snapshots, first_row_id, added_rows, metadata_location,
		created_ms)
	VALUES (p_batch, p_table, p_incarnation, p_batch_no, p_epoch, p_base, p_txn, p_state,
		p_outcomes, p_snapshots, p_first_row_id, p_added_rows, p_location, v_now);
	-- All rows that this touches, in path order, before the first is changed.
	PERFORM 1 FROM frazil.object o WHERE o.owner = p_batch OR o.owner = ANY (p_txn)
		ORDER BY o.path FOR UPDATE;
	PERFORM frazil.settle_ledger(p_batch, p_objects);
	DELETE FROM frazil.object o USING unnest(p_txn, p_state) u(txn, state)
	WHERE o.owner = u.txn AND o.state = 0 AND u.state = 2;
	UPDATE frazil.object o SET state = 2, since_ms = v_now
	FROM unnest(p_txn, p_state) u(txn, state)
	WHERE o.owner = u.txn AND o.state = 0 AND u.state <> 2;
	INSERT INTO frazil.object (path, table_id, state, since_ms)
	SELECT e.path, p_table, 2, v_now FROM unnest(p_expired) e(path)
	ORDER BY e.path COLLATE "C" ON CONFLICT DO NOTHING;
	RETURN true;
END
$$;

-- Objects of an attempt that never published. The head's lock waits for a publish on its way; a
-- batch row with this id means that it did publish: nothing is done.
CREATE FUNCTION frazil.unledger(p_table uuid, p_batch uuid, p_epoch int8)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.head h WHERE h.table_id = p_table FOR SHARE;
	PERFORM 1 FROM frazil.object o WHERE o.owner = p_batch AND o.state = 1
		ORDER BY o.path FOR UPDATE;
	IF EXISTS (SELECT FROM frazil.batch b WHERE b.batch = p_batch) THEN
		RETURN false;
	END IF;
	UPDATE frazil.object o SET state = 2, since_ms = frazil.now_ms()
	WHERE o.owner = p_batch AND o.state = 1 AND o.epoch <= p_epoch;
	RETURN true;
END
$$;

-- Ends an incarnation whose head row the caller holds: open and sealed transactions end, attempts
-- that can no longer publish leave the ledger.
CREATE FUNCTION frazil.end_table(p_table uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_txn uuid[];
	v_now int8 := frazil.now_ms();
BEGIN
	DELETE FROM frazil.head h WHERE h.table_id = p_table;
	PERFORM 1 FROM frazil.txn t WHERE t.table_id = p_table AND t.state <= 1
		ORDER BY t.txn FOR UPDATE;
	WITH ended AS (
		UPDATE frazil.txn t SET state = 4, final_ms = v_now
		WHERE t.table_id = p_table AND t.state <= 1 RETURNING t.txn
	)
	SELECT coalesce(array_agg(e.txn), '{}') INTO v_txn FROM ended e;
	PERFORM 1 FROM frazil.object o WHERE (o.owner = ANY (v_txn) AND o.state = 0)
		OR (o.table_id = p_table AND o.state = 1 AND o.epoch >= 0)
		ORDER BY o.path FOR UPDATE;
	UPDATE frazil.object o SET state = 2, since_ms = v_now
	WHERE (o.owner = ANY (v_txn) AND o.state = 0)
		OR (o.table_id = p_table AND o.state = 1 AND o.epoch >= 0);
	DELETE FROM frazil.tabular t WHERE t.table_id = p_table;
END
$$;

-- Drops are for tables; purge paths are queued, except those that somebody has staged or claimed.
CREATE FUNCTION frazil.drop_table(p_table uuid, p_incarnation int8, p_purge text[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.head h WHERE h.table_id = p_table
		AND h.incarnation = p_incarnation FOR UPDATE;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM frazil.end_table(p_table);
	INSERT INTO frazil.object (path, table_id, state, since_ms)
	SELECT DISTINCT u.path COLLATE "C", p_table, 2, frazil.now_ms() FROM unnest(p_purge) u(path)
	ORDER BY 1 ON CONFLICT DO NOTHING;
	RETURN true;
END
$$;

-- Verdicts: 0 created, 1 this batch is there, 2 name is a table's, 3 name is a view's,
-- 4 no namespace, 5 uuid live under another name, 6 location live under another name.
-- A name's creations and renames wait for each other at the namespace's row.
CREATE FUNCTION frazil.create_table(p_warehouse text, p_parent text[], p_namespace text,
	p_name text, p_table uuid, p_location text, p_overwrite boolean, p_holder uuid,
	p_batch uuid, p_base int8, p_outcomes bytea, p_snapshots int8[], p_first_row_id int8,
	p_added_rows int8, p_metadata text, p_last_seq int8, p_next_row_id int8,
	p_objects text[])
RETURNS TABLE (verdict int4, h frazil.head) LANGUAGE plpgsql AS $$
DECLARE
	v_ns int8;
	v_old uuid;
	v_kind int2;
	v_inc int8;
BEGIN
	SELECT n.namespace_id INTO v_ns FROM frazil.namespace n
		JOIN frazil.warehouse w USING (warehouse_id)
	WHERE w.name = p_warehouse AND n.parent = p_parent AND n.name = p_namespace
	FOR NO KEY UPDATE OF n;
	IF NOT FOUND THEN
		verdict := 4;
		RETURN NEXT;
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM frazil.batch b WHERE b.batch = p_batch) THEN
		verdict := 1;
		SELECT e.* INTO h FROM frazil.head e WHERE e.table_id = p_table;
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT t.table_id, t.kind INTO v_old, v_kind FROM frazil.tabular t
	WHERE t.namespace_id = v_ns AND t.name = p_name;
	IF FOUND AND v_kind = 1 THEN
		verdict := 3;
		RETURN NEXT;
		RETURN;
	ELSIF FOUND AND NOT p_overwrite THEN
		verdict := 2;
		RETURN NEXT;
		RETURN;
	END IF;
	IF v_old IS DISTINCT FROM p_table
			AND EXISTS (SELECT FROM frazil.tabular t WHERE t.table_id = p_table) THEN
		verdict := 5;
		RETURN NEXT;
		RETURN;
	END IF;
	-- A metadata file that this very batch wrote can be nobody else's.
	IF NOT p_metadata = ANY (p_objects) AND EXISTS (SELECT FROM frazil.head e
			WHERE e.metadata_location = p_metadata AND e.table_id IS DISTINCT FROM v_old) THEN
		verdict := 6;
		RETURN NEXT;
		RETURN;
	END IF;
	IF v_old IS NOT NULL THEN
		PERFORM 1 FROM frazil.head e WHERE e.table_id = v_old FOR UPDATE;
		PERFORM frazil.end_table(v_old);
	END IF;
	INSERT INTO frazil.tabular (table_id, namespace_id, name, kind, location)
	VALUES (p_table, v_ns, p_name, 0, p_location) ON CONFLICT (table_id) DO NOTHING;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the uuid became live under another name' USING ERRCODE = 'FZ003';
	END IF;
	v_inc := nextval('frazil.incarnation');
	INSERT INTO frazil.head (table_id, incarnation, epoch, holder, version, metadata_location,
		last_batch, last_seq, next_row_id)
	VALUES (p_table, v_inc, 1, p_holder, p_base + 1, p_metadata, 1, p_last_seq,
		p_next_row_id);
	INSERT INTO frazil.horizon (table_id, closed_before) VALUES (p_table, 0)
	ON CONFLICT DO NOTHING;
	INSERT INTO frazil.batch (batch, table_id, incarnation, batch_no, epoch, base_version, txns,
		txn_states, outcomes, snapshots, first_row_id, added_rows, metadata_location,
		created_ms)
	VALUES (p_batch, p_table, v_inc, 1, 1, p_base, '{}', '{}', p_outcomes, p_snapshots,
		p_first_row_id, p_added_rows, p_metadata, frazil.now_ms());
	PERFORM frazil.settle_ledger(p_batch, p_objects);
	SELECT e.* INTO h FROM frazil.head e WHERE e.table_id = p_table;
	verdict := 0;
	RETURN NEXT;
END
$$;

-- Claims queued objects past their grace, and claimed ones whose cleaner has been silent for the
-- tombstone time. First it collects leftovers: staged objects of final transactions, ledger rows of
-- an epoch that is over. p_table nil: objects of tables that are gone.
CREATE FUNCTION frazil.clean_claim(p_table uuid, p_grace int8, p_tombstone int8, p_max int4)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	v_now int8 := frazil.now_ms();
	v_nil boolean := p_table = '00000000-0000-0000-0000-000000000000';
	v_tables uuid[];
	v_path text[];
BEGIN
	IF v_nil THEN
		SELECT array_agg(q.table_id) INTO v_tables FROM (
			SELECT DISTINCT o.table_id FROM frazil.object o
			WHERE o.state <> 0 AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id)
			LIMIT 100) q;
	ELSE
		v_tables := ARRAY[p_table];
	END IF;
	-- Locked first, judged by the next statement: the one that locks still has the old snapshot.
	SELECT array_agg(q.path) INTO v_path FROM (
		SELECT o.path FROM frazil.object o
		WHERE o.table_id = ANY (v_tables) AND ((o.state = 0 AND NOT EXISTS (
			SELECT FROM frazil.txn t WHERE t.txn = o.owner AND t.state <= 1))
			OR (o.state = 1 AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id AND h.epoch <= o.epoch)))
		ORDER BY o.path LIMIT 1000 FOR UPDATE SKIP LOCKED) q;
	UPDATE frazil.object o SET state = 2, since_ms = v_now
	WHERE o.path = ANY (v_path) AND (
		(o.state = 0 AND NOT EXISTS (SELECT FROM frazil.txn t WHERE t.txn = o.owner
			AND t.state <= 1))
		OR (o.state = 1 AND o.epoch >= 0 AND NOT EXISTS (SELECT FROM frazil.head h
			WHERE h.table_id = o.table_id AND h.epoch <= o.epoch))
		-- A create that was never heard of again. Should it still come, it finds its ledger
		-- rows gone and fails.
		OR (o.state = 1 AND o.epoch < 0 AND o.since_ms <= v_now - p_grace));
	SELECT array_agg(q.path) INTO v_path FROM (
		SELECT o.path FROM frazil.object o
		WHERE o.table_id = ANY (v_tables) AND ((o.state = 2 AND o.since_ms <= v_now - p_grace)
			OR (o.state = 3 AND o.since_ms <= v_now - p_tombstone))
		ORDER BY o.since_ms LIMIT p_max FOR UPDATE SKIP LOCKED) q;
	RETURN QUERY UPDATE frazil.object o SET state = 3, since_ms = v_now
	WHERE o.path = ANY (v_path) AND o.state IN (2, 3) RETURNING o.path::text;
END
$$;

CREATE FUNCTION frazil.clean_done(p_gone text[], p_unsure text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.object o WHERE (o.path = ANY (p_gone) OR o.path = ANY (p_unsure))
		AND o.state = 3 ORDER BY o.path FOR UPDATE;
	DELETE FROM frazil.object o WHERE o.path = ANY (p_gone) AND o.state = 3;
	UPDATE frazil.object o SET since_ms = frazil.now_ms()
	WHERE o.path = ANY (p_unsure) AND o.state = 3;
END
$$;

-- Advances every table's horizon and purges behind it. The horizon's row is locked first and the
-- oldest id read by the next statement, so that a Begin on its way is either seen or refused.
-- Returns the number of purged transactions.
CREATE FUNCTION frazil.advance_horizon(p_lifetime int8) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	x record;
	v_now int8 := frazil.now_ms();
	v_cut int8 := v_now - p_lifetime;
	v_closed int8;
	v_txn uuid[];
	v_n int8 := 0;
BEGIN
	FOR x IN SELECT h.table_id FROM frazil.horizon h ORDER BY h.table_id FOR UPDATE LOOP
		SELECT least(v_cut - 600000, (SELECT t.id_ms FROM frazil.txn t
			WHERE t.table_id = x.table_id AND (t.state <= 1 OR t.final_ms > v_cut)
			ORDER BY t.id_ms LIMIT 1)) INTO v_closed;
		UPDATE frazil.horizon h SET closed_before = greatest(h.closed_before, v_closed)
		WHERE h.table_id = x.table_id RETURNING h.closed_before INTO v_closed;
		SELECT array_agg(q.txn) INTO v_txn FROM (
			SELECT t.txn FROM frazil.txn t WHERE t.table_id = x.table_id
				AND t.id_ms < v_closed AND t.state BETWEEN 2 AND 5
				AND t.final_ms <= v_cut
			ORDER BY t.txn LIMIT 10000 FOR UPDATE SKIP LOCKED) q;
		IF v_txn IS NOT NULL THEN
			v_n := v_n + cardinality(v_txn);
			DELETE FROM frazil.fragment f WHERE f.txn = ANY (v_txn);
			DELETE FROM frazil.batch b WHERE EXISTS (SELECT FROM frazil.txn p
					WHERE p.txn = ANY (v_txn) AND p.table_id = b.table_id
					AND p.incarnation = b.incarnation AND p.batch_no = b.batch_no)
				AND NOT EXISTS (SELECT FROM frazil.txn p WHERE p.txn = ANY (b.txns)
					AND NOT p.txn = ANY (v_txn));
			DELETE FROM frazil.txn t WHERE t.txn = ANY (v_txn);
		END IF;
		DELETE FROM frazil.batch b WHERE b.table_id = x.table_id AND b.created_ms <= v_cut
			AND b.txns = '{}' AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = b.table_id AND h.incarnation = b.incarnation
				AND h.last_batch <= b.batch_no);
	END LOOP;
	RETURN v_n;
END
$$;
