-- As before; keys are joined. Each removal compared with every property took minutes for a hundred thousand of
-- both, and whoever changed something in the namespace waited behind it.
CREATE OR REPLACE FUNCTION frazil.update_namespace(p_warehouse text, p_levels text[], p_remove text[],
	p_keys text[], p_values text[])
RETURNS TABLE (found_it boolean, updated text[], removed text[], missing text[])
LANGUAGE plpgsql AS $$
DECLARE
	v_id int8 := frazil.namespace_of(p_warehouse, p_levels);
	v_old jsonb;
BEGIN
	SELECT n.properties INTO v_old FROM frazil.namespace n
	WHERE n.namespace_id = v_id FOR NO KEY UPDATE;
	found_it := FOUND;
	IF found_it THEN
		removed := '{}';
		missing := '{}';
		IF cardinality(p_remove) > 0 THEN
			SELECT coalesce(jsonb_object_agg(e.key, e.value) FILTER (WHERE r.k IS NULL), '{}'),
				coalesce(array_agg(r.k) FILTER (WHERE r.k = e.key), '{}'),
				coalesce(array_agg(r.k) FILTER (WHERE e.key IS NULL), '{}')
			INTO v_old, removed, missing
			FROM jsonb_each(v_old) e FULL JOIN unnest(p_remove) r(k) ON r.k = e.key;
		END IF;
		UPDATE frazil.namespace n SET properties = v_old || jsonb_object(p_keys, p_values)
		WHERE n.namespace_id = v_id;
		updated := p_keys;
	END IF;
	RETURN NEXT;
END
$$;
