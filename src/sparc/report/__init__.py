"""What people look at: tables and pictures, made from results alone."""
