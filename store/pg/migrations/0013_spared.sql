-- As before, and what cannot be taken yet holds up nothing: of the dropped tables those are chosen that
-- have something to take, a hundred that only wait would be chosen for ever; and files that kept answers
-- are made from, often the oldest, are not chosen among the paths. The trigger spares them too.
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
	WHERE o.path = ANY (v_path) AND o.state IN (2, 3) AND (NOT v_nil OR o.epoch <> 0)
	RETURNING o.path::text;
END
$$;
