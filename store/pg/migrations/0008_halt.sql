-- Tables that an operator has halted: no batch is begun for them until the row is gone. It goes with its
-- table.
CREATE TABLE frazil.halt (
	table_id uuid PRIMARY KEY REFERENCES frazil.head ON DELETE CASCADE,
	cause text COLLATE "C" NOT NULL,
	since_ms int8 NOT NULL
);

-- An empty cause ends the halt, by whomever. A halt is the holder's word: its epoch guards it, and whoever
-- takes the table over bumps the head first, so that a look after the bump finds every halt.
CREATE FUNCTION frazil.set_halt(p_table uuid, p_epoch int8, p_cause text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	IF p_cause = '' THEN
		DELETE FROM frazil.halt x WHERE x.table_id = p_table;
		RETURN true;
	END IF;
	PERFORM 1 FROM frazil.head h WHERE h.table_id = p_table AND h.epoch = p_epoch FOR SHARE;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	INSERT INTO frazil.halt (table_id, cause, since_ms)
	VALUES (p_table, p_cause, frazil.now_ms())
	ON CONFLICT (table_id) DO UPDATE SET cause = excluded.cause;
	RETURN true;
END
$$;
