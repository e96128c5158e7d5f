-- What the cleaner has to do is chosen by what is due, not by the tables that are loaded: a table without
-- due rows costs nothing, and each of the others has its turn.

-- The next tables after p_after that have something to take, at most p_max, each with whether it is gone;
-- last a row with `gone` null: where to go on, nil at the end. Reads only.
CREATE FUNCTION frazil.clean_due(p_after uuid, p_grace int8, p_tombstone int8, p_max int4)
RETURNS TABLE (at uuid, gone boolean) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	c_looks CONSTANT int4 := 2000; -- tables that have rows of any kind
	v_now int8 := frazil.now_ms();
	v_at uuid := p_after;
	v_next uuid;
	v_n int4 := 0;
BEGIN
	FOR i IN 1 .. c_looks LOOP
		SELECT o.table_id INTO v_next FROM frazil.object o WHERE o.table_id > v_at
		ORDER BY o.table_id LIMIT 1;
		IF NOT FOUND THEN
			v_at := '00000000-0000-0000-0000-000000000000';
			EXIT;
		END IF;
		v_at := v_next;
		IF EXISTS (SELECT FROM frazil.object o WHERE o.table_id = v_at AND o.state = 2
				AND o.since_ms <= v_now - p_grace
				AND NOT EXISTS (SELECT FROM frazil.idem i WHERE i.location = o.path))
			OR EXISTS (SELECT FROM frazil.object o WHERE o.table_id = v_at AND o.state = 3
				AND o.since_ms <= v_now - p_tombstone)
			OR EXISTS (SELECT FROM frazil.object o WHERE o.table_id = v_at AND o.state = 1
				AND CASE WHEN o.epoch < 0 THEN o.since_ms <= v_now - p_grace
				ELSE NOT EXISTS (SELECT FROM frazil.head h
					WHERE h.table_id = o.table_id AND h.epoch <= o.epoch) END)
			OR EXISTS (SELECT FROM (SELECT s.owner FROM frazil.object s WHERE s.table_id = v_at
					AND s.state = 0 ORDER BY s.since_ms LIMIT 1000) o
				WHERE NOT EXISTS (SELECT FROM frazil.txn t WHERE t.txn = o.owner
					AND t.state <= 1)) THEN
			at := v_at;
			gone := NOT EXISTS (SELECT FROM frazil.head h WHERE h.table_id = v_at);
			RETURN NEXT;
			v_n := v_n + 1;
			EXIT WHEN v_n = p_max;
		END IF;
	END LOOP;
	at := v_at;
	gone := NULL;
	RETURN NEXT;
END
$$;

-- clean_claim of one table (the function of before goes with a later release). p_gone: it was chosen as
-- one without a head. Nothing can be looked up of it any more: what is not sure to be garbage is
-- forgotten, the rest is claimed as long as the table has not come back. Otherwise the head is read after
-- the claim, and without one the paths are given back.
CREATE FUNCTION frazil.clean_take(p_table uuid, p_gone boolean, p_grace int8, p_tombstone int8, p_max int4)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_now int8 := frazil.now_ms();
	v_path text[];
	v_more text[];
BEGIN
	-- Leftovers first. Locked, then judged by the next statement: the one that locks still has the old
	-- snapshot. Of staged ones the oldest: every transaction ends, so all come to the front.
	SELECT array_agg(q.path) INTO v_path FROM (
		SELECT s.path, s.owner FROM frazil.object s WHERE s.table_id = p_table AND s.state = 0
		ORDER BY s.since_ms LIMIT 1000) q
	WHERE NOT EXISTS (SELECT FROM frazil.txn t WHERE t.txn = q.owner AND t.state <= 1);
	SELECT v_path || array_agg(q.path) INTO v_path FROM (
		SELECT o.path FROM frazil.object o WHERE o.table_id = p_table AND o.state = 1
			AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id AND h.epoch <= o.epoch)
		ORDER BY o.since_ms LIMIT 1000) q;
	IF v_path IS NOT NULL THEN
		SELECT array_agg(q.path) INTO v_path FROM (
			SELECT o.path FROM frazil.object o WHERE o.path = ANY (v_path)
			ORDER BY o.path FOR UPDATE SKIP LOCKED) q;
		UPDATE frazil.object o SET state = 2, since_ms = v_now
		WHERE o.path = ANY (v_path) AND o.table_id = p_table AND (
			(o.state = 0 AND NOT EXISTS (SELECT FROM frazil.txn t WHERE t.txn = o.owner
				AND t.state <= 1))
			OR (o.state = 1 AND o.epoch >= 0 AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id AND h.epoch <= o.epoch))
			-- A create that was never heard of again. Should it still come, it finds its
			-- ledger rows gone and fails.
			OR (o.state = 1 AND o.epoch < 0 AND o.since_ms <= v_now - p_grace));
	END IF;
	IF p_gone THEN
		DELETE FROM frazil.object o WHERE o.path IN (
			SELECT q.path FROM frazil.object q WHERE q.table_id = p_table AND q.epoch = 0
				AND ((q.state = 2 AND q.since_ms <= v_now - p_grace)
				OR (q.state = 3 AND q.since_ms <= v_now - p_tombstone))
			LIMIT 10000 FOR UPDATE SKIP LOCKED)
		AND o.state IN (2, 3) AND o.epoch = 0
		AND NOT EXISTS (SELECT FROM frazil.head h WHERE h.table_id = o.table_id);
	END IF;
	-- One state after the other: so each is read in the order of the index, however many wait.
	SELECT array_agg(q.path) INTO v_path FROM (
		SELECT o.path FROM frazil.object o WHERE o.table_id = p_table AND o.state = 3
			AND o.since_ms <= v_now - p_tombstone AND (NOT p_gone OR o.epoch <> 0)
		ORDER BY o.since_ms LIMIT p_max FOR UPDATE SKIP LOCKED) q;
	SELECT array_agg(q.path) INTO v_more FROM (
		SELECT o.path FROM frazil.object o WHERE o.table_id = p_table AND o.state = 2
			AND o.since_ms <= v_now - p_grace AND (NOT p_gone OR o.epoch <> 0)
			AND NOT EXISTS (SELECT FROM frazil.idem i WHERE i.location = o.path)
		ORDER BY o.since_ms LIMIT p_max - coalesce(cardinality(v_path), 0)
		FOR UPDATE SKIP LOCKED) q;
	RETURN QUERY UPDATE frazil.object o SET state = 3, since_ms = v_now
	WHERE o.path = ANY (v_path || v_more) AND o.state IN (2, 3) AND (NOT p_gone OR (o.epoch <> 0
		AND NOT EXISTS (SELECT FROM frazil.head h WHERE h.table_id = o.table_id)))
	RETURNING o.path::text;
END
$$;

-- As clean_done; p_back: claimed for nothing, no DELETE was sent, they are queued from now on.
CREATE FUNCTION frazil.clean_done(p_gone text[], p_unsure text[], p_back text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM frazil.object o WHERE o.path = ANY (p_gone || p_unsure || p_back)
		AND o.state = 3 ORDER BY o.path FOR UPDATE;
	DELETE FROM frazil.object o WHERE o.path = ANY (p_gone) AND o.state = 3;
	UPDATE frazil.object o SET since_ms = frazil.now_ms()
	WHERE o.path = ANY (p_unsure) AND o.state = 3;
	UPDATE frazil.object o SET state = 2, since_ms = frazil.now_ms()
	WHERE o.path = ANY (p_back) AND o.state = 3;
END
$$;
