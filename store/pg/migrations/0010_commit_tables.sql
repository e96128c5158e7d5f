-- One decision over several tables: publishes of those that are there and creations, all or none.
--
-- Items are the tables of p_table, then those of n_table. Texts and numbers of which an item has many
-- travel in one array for all: x_to[i] + 1 .. x_to[i + 1] are those of item i. A part with batch number
-- 0 is judged and not written.
--
-- Locks in the order of everything else: namespaces, heads, objects; each kind in key order. One row
-- comes back: item 0 when all is written, or the item that is refused; verdict 0: its head's guard,
-- else what create_table says.
CREATE FUNCTION frazil.commit_tables(p_table uuid[], p_incarnation int8[], p_epoch int8[],
	p_base int8[], p_batch_no int8[], p_batch uuid[], p_first_row_id int8[],
	p_added_rows int8[], p_location text[], p_last_seq int8[], p_next_row_id int8[],
	n_warehouse text[], n_level_to int4[], n_level text[], n_name text[], n_table uuid[],
	n_location text[], n_holder uuid, n_batch uuid[], n_base int8[], n_metadata text[],
	n_last_seq int8[], n_next_row_id int8[], x_snapshot_to int4[], x_snapshot int8[],
	x_object_to int4[], x_object text[], x_garbage_to int4[], x_garbage text[])
RETURNS TABLE (item int4, verdict int4) LANGUAGE plpgsql AS $$
DECLARE
	v_parts int4 := cardinality(p_table);
	v_lo int4;
	v_hi int4;
BEGIN
	verdict := 0;
	item := 0;
	IF cardinality(n_table) > 0 THEN
		PERFORM 1 FROM frazil.namespace n WHERE n.namespace_id IN (
			SELECT frazil.namespace_of(n_warehouse[k], n_level[n_level_to[k] + 1:n_level_to[k + 1]])
			FROM generate_series(1, cardinality(n_table)) k)
		ORDER BY n.namespace_id FOR NO KEY UPDATE;
	END IF;
	PERFORM 1 FROM frazil.head h WHERE h.table_id = ANY (p_table)
		ORDER BY h.table_id FOR NO KEY UPDATE;
	IF EXISTS (SELECT FROM frazil.batch b WHERE b.batch = ANY (p_batch || n_batch)) THEN
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT u.ord::int4 INTO item FROM unnest(p_table, p_incarnation, p_epoch, p_base)
			WITH ORDINALITY u(table_id, incarnation, epoch, base, ord)
		LEFT JOIN frazil.head h ON h.table_id = u.table_id
			AND h.incarnation = u.incarnation AND h.epoch = u.epoch
			AND h.version = u.base
	WHERE h.table_id IS NULL ORDER BY u.ord LIMIT 1;
	IF FOUND THEN
		RETURN NEXT;
		RETURN;
	END IF;
	PERFORM 1 FROM frazil.object o WHERE o.owner = ANY (p_batch || n_batch) AND o.state = 1
		ORDER BY o.path FOR UPDATE;
	BEGIN
		FOR k IN 1 .. cardinality(n_table) LOOP
			item := v_parts + k;
			v_lo := n_level_to[k] + 1;
			v_hi := n_level_to[k + 1];
			SELECT c.verdict INTO verdict FROM frazil.create_table(n_warehouse[k],
				n_level[v_lo:v_hi - 1], n_level[v_hi], n_name[k], n_table[k],
				n_location[k], false, n_holder, n_batch[k], n_base[k], ''::bytea,
				x_snapshot[x_snapshot_to[item] + 1:x_snapshot_to[item + 1]], 0, 0,
				n_metadata[k], n_last_seq[k], n_next_row_id[k],
				x_object[x_object_to[item] + 1:x_object_to[item + 1]]) c;
			IF verdict <> 0 THEN
				RAISE EXCEPTION 'refused' USING ERRCODE = 'FZ005';
			END IF;
		END LOOP;
		FOR i IN 1 .. v_parts LOOP
			CONTINUE WHEN p_batch_no[i] = 0;
			IF NOT frazil.publish(p_table[i], p_incarnation[i], p_epoch[i], p_base[i],
					p_batch_no[i], p_batch[i], '{}', '{}', ''::bytea,
					x_snapshot[x_snapshot_to[i] + 1:x_snapshot_to[i + 1]],
					p_first_row_id[i], p_added_rows[i], p_location[i],
					p_last_seq[i], p_next_row_id[i],
					x_object[x_object_to[i] + 1:x_object_to[i + 1]],
					x_garbage[x_garbage_to[i] + 1:x_garbage_to[i + 1]]) THEN
				RAISE EXCEPTION 'a head that is locked has changed'
					USING ERRCODE = 'FZ002';
			END IF;
		END LOOP;
		item := 0;
	EXCEPTION
		WHEN SQLSTATE 'FZ005' THEN
			NULL; -- item and verdict say which and why
		WHEN SQLSTATE 'FZ003' THEN
			verdict := 5;
	END;
	RETURN NEXT;
END
$$;
