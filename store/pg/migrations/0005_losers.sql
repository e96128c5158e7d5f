-- Seal that also queues the files of attempts that lost: from then on nobody can commit them.
-- p_loser_ord: number of the item that a path belongs to.
CREATE FUNCTION frazil.seal_and_queue(p_txn uuid[], p_digest bytea[], p_seal bytea[],
	p_commit boolean[], p_summary bytea[], p_loser_ord int4[], p_loser text[])
RETURNS SETOF frazil.item LANGUAGE plpgsql AS $$
DECLARE
	r frazil.item;
	v_sealed int4[] := '{}';
BEGIN
	FOR r IN SELECT * FROM frazil.seal_items(p_txn, p_digest, p_seal, p_commit, p_summary) LOOP
		IF r.fresh THEN
			v_sealed := v_sealed || r.ord;
		END IF;
		RETURN NEXT r;
	END LOOP;
	IF cardinality(p_loser) > 0 THEN
		PERFORM 1 FROM frazil.object o WHERE o.path = ANY (p_loser) ORDER BY o.path FOR UPDATE;
		UPDATE frazil.object o SET state = 2, since_ms = frazil.now_ms()
		FROM unnest(p_loser_ord, p_loser) u(ord, path)
		WHERE o.path = u.path AND o.owner = p_txn[u.ord] AND o.state = 0
			AND u.ord = ANY (v_sealed);
	END IF;
END
$$;
