-- What becomes of a table's queued paths when the table goes. A path that somebody staged or spent
-- may be live: only a look at the table's snapshots could tell, and after a drop or an unregister there
-- are none of ours to look at, while another catalog may go on with the files. Such rows (epoch 0) are
-- forgotten and the files stay. Objects that an attempt of ours wrote and never published (epoch
-- <> 0) were named by nobody, and what a purge names has been walked: both are deleted.

-- As drop_and_purge, and tells where the table's metadata was at the end. p_all: everything of the
-- table's own is purged, with what was queued for it beneath its location.
CREATE FUNCTION frazil.drop_head(p_table uuid, p_incarnation int8, p_purge text[], p_all boolean)
RETURNS TABLE (done boolean, kept text[], metadata text) LANGUAGE plpgsql AS $$
DECLARE
	v_root text;
BEGIN
	SELECT h.metadata_location, rtrim(t.location, '/') || '/' INTO metadata, v_root
	FROM frazil.head h JOIN frazil.tabular t USING (table_id)
	WHERE h.table_id = p_table AND h.incarnation = p_incarnation FOR UPDATE OF h;
	SELECT d.done, d.kept INTO done, kept
	FROM frazil.drop_and_purge(p_table, p_incarnation, p_purge) d;
	IF done THEN
		UPDATE frazil.object o SET epoch = 1
		WHERE o.table_id = p_table AND o.state IN (2, 3) AND o.epoch = 0
			AND (o.path = ANY (p_purge) OR (p_all AND starts_with(o.path, v_root)));
	END IF;
	RETURN NEXT;
END
$$;

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
	IF v_nil THEN
		-- The table may have come back since it was chosen: then its own round looks.
		DELETE FROM frazil.object o WHERE o.path = ANY (v_path) AND o.state IN (2, 3)
			AND o.epoch = 0 AND NOT EXISTS (SELECT FROM frazil.head h
				WHERE h.table_id = o.table_id);
	END IF;
	RETURN QUERY UPDATE frazil.object o SET state = 3, since_ms = v_now
	WHERE o.path = ANY (v_path) AND o.state IN (2, 3) AND (NOT v_nil OR o.epoch <> 0)
	RETURNING o.path::text;
END
$$;
