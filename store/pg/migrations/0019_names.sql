-- A metadata file belongs to one table. Its uuid says which, so a file that is live and is registered again
-- is refused by its uuid first. What is left to find is one that was overwritten in place with the document
-- of another table: both would go on from it, and each would delete it one day. It is found by the folder
-- that it lies in: the heads of those who keep files there, or above it, are looked at. (Before, every
-- head was read: an index of what they name would change with each commit.) One that lies in no folder of
-- the table which names it, having been registered from elsewhere and not committed to since, is not found.
CREATE FUNCTION frazil.is_named(p_metadata text, p_but uuid) RETURNS boolean LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
	SELECT EXISTS (SELECT FROM frazil.place o JOIN frazil.head h USING (table_id)
		WHERE o.path = ANY (frazil.folders_of(frazil.place_of(regexp_replace(p_metadata,
			'/[^/]*$', ''))))
		AND h.metadata_location = p_metadata AND o.table_id IS DISTINCT FROM p_but)
$$;

-- As before, by this look.
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
	IF NOT p_metadata = ANY (p_objects) AND frazil.is_named(p_metadata, v_old) THEN
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
