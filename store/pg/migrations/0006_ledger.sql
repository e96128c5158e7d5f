-- As before, and: a ledger statement that comes after the publish of its own batch (it was lost and
-- late) must not put live objects on the ledger again. The head's lock waits for a publish on its
-- way, the look for the batch row is a statement of its own.
CREATE OR REPLACE FUNCTION frazil.ledger(p_table uuid, p_incarnation int8, p_epoch int8,
	p_batch uuid, p_path text[])
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
	IF EXISTS (SELECT FROM frazil.batch b WHERE b.batch = p_batch) THEN
		RAISE EXCEPTION 'the batch is published' USING ERRCODE = 'FZ002';
	END IF;
	INSERT INTO frazil.object AS o (path, table_id, owner, epoch, state, since_ms)
	SELECT u.path, p_table, p_batch, p_epoch, 1, frazil.now_ms()
	FROM unnest(p_path) u(path) ORDER BY u.path COLLATE "C"
	ON CONFLICT (path) DO UPDATE SET epoch = greatest(o.epoch, excluded.epoch)
		WHERE o.state = 1 AND o.owner = p_batch;
	GET DIAGNOSTICS v_n = ROW_COUNT;
	IF v_n <> cardinality(p_path) THEN
		RAISE EXCEPTION 'a new object name is in use' USING ERRCODE = 'FZ002';
	END IF;
	RETURN true;
END
$$;
