-- As before, and: transactions that end with their table tell so. They have no batch; -1 in its place
-- is what the answer TABLE_GONE is made from, also long after.
CREATE OR REPLACE FUNCTION frazil.end_table(p_table uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_txn uuid[];
	v_now int8 := frazil.now_ms();
BEGIN
	DELETE FROM frazil.head h WHERE h.table_id = p_table;
	PERFORM 1 FROM frazil.txn t WHERE t.table_id = p_table AND t.state <= 1
		ORDER BY t.txn FOR UPDATE;
	WITH ended AS (
		UPDATE frazil.txn t SET state = 4, batch_no = -1, final_ms = v_now
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
