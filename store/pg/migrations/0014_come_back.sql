-- A table whose uuid lived here before comes back: what was queued of it is garbage of the table that
-- went, and may be live in the one that comes.

-- Whoever brings a table asks this before it has a head, and holds the rows until the end of the
-- transaction: a cleaner that chose them meanwhile skips them, and one that was first has claimed them,
-- which the lock waits for. False: a file of the table is being deleted. Else all that is queued is to
-- be looked at from now on, also after the table has gone again (epoch 0), and its own metadata file is
-- nobody's garbage. p_location: of a table that was made elsewhere, whose files may lie there under
-- another's uuid; else null.
CREATE FUNCTION frazil.take_back(p_table uuid, p_location text, p_metadata text) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	v_from text := rtrim(p_location, '/') || '/';
	v_to text := rtrim(p_location, '/') || '0';
BEGIN
	PERFORM 1 FROM frazil.object o WHERE o.table_id = p_table AND o.state IN (2, 3)
		ORDER BY o.path FOR UPDATE;
	PERFORM 1 FROM frazil.object o WHERE o.path >= v_from AND o.path < v_to AND o.state IN (2, 3)
		ORDER BY o.path FOR UPDATE;
	IF EXISTS (SELECT FROM frazil.object o WHERE o.table_id = p_table AND o.state = 3)
			OR EXISTS (SELECT FROM frazil.object o WHERE o.path >= v_from AND o.path < v_to
				AND o.state = 3) THEN
		RETURN false;
	END IF;
	UPDATE frazil.object o SET epoch = 0
	WHERE o.table_id = p_table AND o.state = 2 AND o.epoch <> 0;
	UPDATE frazil.object o SET epoch = 0
	WHERE o.path >= v_from AND o.path < v_to AND o.state = 2 AND o.epoch <> 0;
	DELETE FROM frazil.object o WHERE o.path = p_metadata AND o.table_id = p_table
		AND o.state IN (1, 2) AND p_location IS NOT NULL;
	RETURN true;
END
$$;

-- As before, and verdict 7: files of this table are being deleted.
CREATE OR REPLACE FUNCTION frazil.create_table(p_warehouse text, p_parent text[], p_namespace text,
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
	BEGIN
		IF v_old IS NOT NULL THEN
			PERFORM 1 FROM frazil.head e WHERE e.table_id = v_old FOR UPDATE;
			PERFORM frazil.end_table(v_old);
		END IF;
		IF NOT frazil.take_back(p_table, CASE WHEN NOT p_metadata = ANY (p_objects) THEN p_location
				END, p_metadata) THEN
			RAISE EXCEPTION 'condemned' USING ERRCODE = 'FZ006';
		END IF;
	EXCEPTION
		WHEN SQLSTATE 'FZ006' THEN
			verdict := 7;
			RETURN NEXT;
			RETURN;
	END;
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

-- As before, and what is claimed for a table that is gone belongs to none that has come back since it
-- was chosen: then its own round looks.
CREATE OR REPLACE FUNCTION frazil.clean_claim(p_table uuid, p_grace int8, p_tombstone int8, p_max int4)
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
			WHERE ((o.state = 1 AND (o.epoch >= 0 OR o.since_ms <= v_now - p_grace))
				OR (o.state = 2 AND o.since_ms <= v_now - p_grace)
				OR (o.state = 3 AND o.since_ms <= v_now - p_tombstone))
				AND NOT EXISTS (SELECT FROM frazil.head h
					WHERE h.table_id = o.table_id)
				AND NOT EXISTS (SELECT FROM frazil.idem i WHERE i.location = o.path)
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
			AND NOT EXISTS (SELECT FROM frazil.idem i WHERE i.location = o.path)
		ORDER BY o.since_ms LIMIT p_max FOR UPDATE SKIP LOCKED) q;
	IF v_nil THEN
		-- The table may have come back since it was chosen: then its own round looks.
		DELETE FROM frazil.object o WHERE o.path = ANY (v_path) AND o.state IN (2, 3)
			AND o.epoch = 0 AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id);
	END IF;
	RETURN QUERY UPDATE frazil.object o SET state = 3, since_ms = v_now
	WHERE o.path = ANY (v_path) AND o.state IN (2, 3) AND (NOT v_nil OR (o.epoch <> 0
		AND NOT EXISTS (SELECT FROM frazil.head h WHERE h.table_id = o.table_id)))
	RETURNING o.path::text;
END
$$;
